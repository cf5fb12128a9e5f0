"""`python -m pillarbox.inbox.contract STORAGE…`: the suite over storages, one line of JSON at the end.

STORAGE is package.module:Class: a Storage, or a subclass of StorageContract in a file of tests, `test_….py`.
"""

import argparse
import importlib
import json
import os
import sys
import tempfile
from collections import Counter
from pathlib import Path

import pytest

from pillarbox.inbox.storage import Storage

NAMED = Path(__file__).with_name("named.py")
URL = "{folder}/inbox"


class Counted:
    """Counts the cases, and hands the named storage to them."""

    def __init__(self, storage: type[Storage] | None, url: str) -> None:
        self._storage = storage
        self._url = url
        self.outcomes: Counter[str] = Counter()

    @pytest.fixture
    def storage_class(self) -> type[Storage] | None:
        return self._storage

    @pytest.fixture
    def storage_url(self) -> str:
        return self._url

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.outcome == "failed":
            self.outcomes[report.outcome] += 1
        elif report.outcome == "skipped":
            self.outcomes["skipped"] += 1


def _load(name: str) -> type[Storage]:
    module, _, attribute = name.partition(":")
    found: object = getattr(importlib.import_module(module), attribute or "", None)
    if isinstance(found, type) and issubclass(found, Storage):
        return found
    raise SystemExit(f"{name} is no Storage; name one as package.module:Class")


def _test_class(name: str) -> str | None:
    """Its place for pytest, when the name is of a class in a file of tests."""
    module, _, attribute = name.partition(":")
    if not module.rpartition(".")[2].startswith("test_"):
        return None
    return f"{module.replace('.', os.sep)}.py::{attribute}"


def _run(name: str, url: str) -> dict[str, int]:
    where = _test_class(name)
    counted = Counted(None if where else _load(name), url)
    with tempfile.TemporaryDirectory() as folder:
        alone = [str(NAMED), "-c", os.devnull, f"--rootdir={folder}", "-p", "no:asyncio"]
        code = pytest.main(
            [*([where] if where else alone), "-q", "-p", "no:cacheprovider"], plugins=[counted]
        )
    outcomes = counted.outcomes
    return {
        "cases": outcomes.total(),
        "passed": outcomes["passed"],
        "failed": outcomes["failed"] or int(code not in (0, 1)),
        "skipped": outcomes["skipped"],
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="make contract", description=__doc__)
    parser.add_argument("storage", nargs="+", help="package.module:Class")
    parser.add_argument("--url", default=URL, help="its DATABASE_URL; {folder} is a new folder for each case")
    arguments = parser.parse_args()
    sys.path.insert(0, os.getcwd())
    results = {name: _run(name, arguments.url) for name in arguments.storage}
    sums = {what: sum(result[what] for result in results.values()) for what in ("cases", "passed", "failed")}
    print(json.dumps(sums | {"storages": results}))
    return 1 if sums["failed"] or not sums["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
