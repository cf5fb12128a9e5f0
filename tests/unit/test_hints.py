"""Which accepts bring their hint in their own commit: lone and quick ones."""

import pytest

from pillarbox.inbox.connections import Pool
from pillarbox.inbox.hints import APART, QUICK, Hinter


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def hinter(clock: Clock) -> Hinter:
    return Hinter(Pool("postgresql://nowhere", 1), clock)


def accept(hinter: Hinter, clock: Clock, seconds: float = 0.001) -> bool:
    with hinter.riding() as hint:
        clock.now += seconds
    return hint


def fail(hinter: Hinter, clock: Clock) -> None:
    with hinter.riding():
        clock.now += QUICK * 2
        raise OSError("away")


def test_a_lone_accept_brings_its_hint(hinter: Hinter, clock: Clock) -> None:
    assert accept(hinter, clock)
    clock.now += APART * 1.1
    assert accept(hinter, clock)


def test_one_that_comes_soon_after_another_does_not(hinter: Hinter, clock: Clock) -> None:
    accept(hinter, clock)
    clock.now += APART * 0.9
    assert not accept(hinter, clock)


def test_one_beside_another_does_not(hinter: Hinter, clock: Clock) -> None:
    with hinter.riding() as first:
        clock.now += APART * 2
        with hinter.riding() as second:
            pass
    assert (first, second) == (True, False)


def test_where_commits_are_slow_none_does_until_one_was_quick(hinter: Hinter, clock: Clock) -> None:
    accept(hinter, clock, QUICK * 2)
    clock.now += 1
    assert not accept(hinter, clock)
    clock.now += 1
    assert accept(hinter, clock)


def test_a_failed_accept_counts_as_any_other(hinter: Hinter, clock: Clock) -> None:
    with pytest.raises(OSError, match="away"):
        fail(hinter, clock)
    clock.now += 1
    assert not accept(hinter, clock)
