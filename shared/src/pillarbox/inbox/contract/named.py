"""The suite over a storage that `python -m pillarbox.inbox.contract` was given by name."""

from pathlib import Path

import pytest

from pillarbox.inbox.contract.given import Make
from pillarbox.inbox.contract.suite import StorageContract
from pillarbox.inbox.storage import Storage


class TestStorage(StorageContract):
    @pytest.fixture
    def storage(self, storage_class: type[Storage], storage_url: str, tmp_path: Path) -> Make:
        """Each case has a folder of its own, and with it data of its own."""
        return lambda limits: storage_class.from_url(storage_url.format(folder=tmp_path), limits)
