"""When a suspect's turn comes."""

import pytest

from pillarbox.ids import Token
from pillarbox_dispatcher.suspects import PAUSE, Suspects


class Clock:
    def __init__(self) -> None:
        self.now = 100.0
        self.asked_again: list[float] = []

    def __call__(self) -> float:
        return self.now

    def again(self, seconds: float) -> None:
        self.asked_again.append(seconds)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def suspects(clock: Clock) -> Suspects:
    return Suspects(clock, 10.0, clock.again)


def test_nothing_waits_until_a_turn_has_seen_one(suspects: Suspects) -> None:
    assert not suspects.wanted()
    suspects.seen(True)
    assert suspects.wanted()
    suspects.seen(False)
    assert not suspects.wanted()


def test_afterwards_the_others_get_as_much_time_as_it_took(suspects: Suspects, clock: Clock) -> None:
    suspects.seen(True)
    assert suspects.wanted()
    clock.now += 3
    suspects.start(Token(1))
    assert suspects.is_running()
    clock.now += 2
    suspects.end(Token(1))
    assert not suspects.is_running()
    assert not suspects.wanted()
    assert clock.asked_again == [10.0, 5.0]
    clock.now += 5
    assert suspects.wanted()


def test_a_slow_one_stops_the_others_no_longer_than_the_bound(suspects: Suspects, clock: Clock) -> None:
    suspects.seen(True)
    assert suspects.wanted()
    suspects.start(Token(1))
    clock.now += 9
    assert suspects.is_alone()
    clock.now += 2
    assert not suspects.is_alone()
    assert suspects.is_running()
    assert not suspects.wanted()
    clock.now += 100
    suspects.end(Token(1))
    assert suspects.wanted()


def test_other_runs_that_end_do_not_end_it(suspects: Suspects) -> None:
    suspects.seen(True)
    suspects.start(Token(1))
    suspects.end(Token(2))
    assert suspects.is_running()


def test_a_turn_that_found_none_is_not_repeated_at_once(suspects: Suspects, clock: Clock) -> None:
    suspects.seen(True)
    assert suspects.wanted()
    suspects.asked()
    assert not suspects.wanted()
    clock.now += PAUSE
    assert suspects.wanted()


def test_patience_with_the_lanes_that_run_ends_and_grows(suspects: Suspects, clock: Clock) -> None:
    suspects.seen(True)
    assert suspects.wanted()
    clock.now += 11
    assert not suspects.wanted()
    clock.now += 11
    assert suspects.wanted()
    clock.now += 19
    assert suspects.wanted()
    clock.now += 2
    assert not suspects.wanted()
