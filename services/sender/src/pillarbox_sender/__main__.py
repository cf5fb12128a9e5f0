"""`python -m pillarbox_sender`"""

from pillarbox import loading

if __name__ == "__main__":
    loading.stop_ends_it()

    from pillarbox import process
    from pillarbox_sender.app import main
    from pillarbox_sender.settings import SenderSettings

    process.run("sender", SenderSettings, main)
