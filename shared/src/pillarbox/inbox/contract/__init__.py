"""What every storage must show: a table of cases for pytest. `make contract STORAGE=package.module:Class`.

`suite.StorageContract` is what tests inherit. Only this package imports pytest.
"""

import pytest

CASES = ("accepting", "failures", "fsm", "given", "leases", "locking", "outbox", "pins", "running")

pytest.register_assert_rewrite(*(f"{__name__}.{module}" for module in CASES))
