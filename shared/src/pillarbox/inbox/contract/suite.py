"""The suite for pytest. What a user's own storage is tested with:

    class TestMyStorage(StorageContract):
        @pytest.fixture
        def storage(self, tmp_path):
            return lambda limits: MyStorage(tmp_path, limits)

`storage` makes a storage that is not open yet, each time on the same data. Cases that a storage need not
keep, by its `durable` and `shared`, are skipped.
"""

import asyncio

import pytest

from pillarbox.inbox.contract import accepting, failures, fsm, leases, locking, outbox, pins, running
from pillarbox.inbox.contract.given import CASES, Case, Given, Make

MODULES = (accepting, failures, fsm, leases, locking, outbox, pins, running)

BY_RULE = sorted(CASES, key=lambda case: case.rule)


@pytest.mark.filterwarnings("error")
class StorageContract:
    @pytest.fixture
    def storage(self) -> Make:
        raise NotImplementedError("override the fixture `storage`: how a storage is made, of its limits")

    @pytest.mark.parametrize("case", BY_RULE, ids=[case.name for case in BY_RULE])
    def test_keeps(self, case: Case, storage: Make) -> None:
        asyncio.run(_keeps(case, storage))


async def _keeps(case: Case, make: Make) -> None:
    async with Given(make) as given:
        if not case.applies(make(given.limits)):
            pytest.skip(f"not asked of it: {', '.join(case.needs)}")
        await case.run(given)
