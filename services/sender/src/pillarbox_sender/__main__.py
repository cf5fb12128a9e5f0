"""`python -m pillarbox_sender`"""

from pillarbox import process
from pillarbox_sender.app import main
from pillarbox_sender.settings import SenderSettings

if __name__ == "__main__":
    process.run("sender", SenderSettings, main)
