"""`python -m pillarbox_admin`: settings from the environment alone."""

from pillarbox import loading

if __name__ == "__main__":
    loading.stop_ends_it()

    from pillarbox import process
    from pillarbox_admin.app import main
    from pillarbox_admin.settings import AdminSettings

    process.run("admin", AdminSettings, main)
