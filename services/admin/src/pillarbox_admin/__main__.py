"""`python -m pillarbox_admin`: settings from the environment alone."""

from pillarbox import process
from pillarbox_admin.app import main
from pillarbox_admin.settings import AdminSettings

if __name__ == "__main__":
    process.run("admin", AdminSettings, main)
