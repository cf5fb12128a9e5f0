"""`python -m pillarbox_ingest`: settings from the environment alone."""

from pillarbox import loading

if __name__ == "__main__":
    loading.stop_ends_it()

    from pillarbox import process
    from pillarbox_ingest.app import main
    from pillarbox_ingest.settings import IngestSettings

    process.run("ingest", IngestSettings, main)
