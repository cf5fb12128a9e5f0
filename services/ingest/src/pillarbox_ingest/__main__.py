"""`python -m pillarbox_ingest`: settings from the environment alone."""

from pillarbox import process
from pillarbox_ingest.app import main
from pillarbox_ingest.settings import IngestSettings

if __name__ == "__main__":
    process.run("ingest", IngestSettings, main)
