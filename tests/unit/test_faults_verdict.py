"""The judge of the kill test must see each fault: a test of it that cannot fail would prove nothing."""

from tests.faults.verdict import Key, judge, key_of, overlaps

A1: Key = ("u", 1, 1)
A2: Key = ("u", 1, 2)
P1: Key = ("p", 1, 1)


def test_key_of_reads_markers_and_nothing_else() -> None:
    assert key_of("#u42:7") == ("u", 42, 7)
    assert key_of("#p-100:1") == ("p", -100, 1)
    assert key_of("hello") is None


def test_all_arrived_once_and_in_order() -> None:
    verdict = judge([A1, A2, P1], [A1, P1, A2], dead=set(), held=set())
    assert verdict.good
    assert not verdict.doubled


def test_missing_is_lost_unless_it_is_listed_as_dead() -> None:
    assert judge([A1, A2], [A1], dead=set(), held=set()).lost == [A2]
    verdict = judge([A1, A2], [A1], dead={A2}, held=set())
    assert verdict.good
    assert verdict.dead == [A2]


def test_a_double_needs_a_killed_sender_that_held_it() -> None:
    assert judge([A1], [A1, A1], dead=set(), held=set()).unexplained == [A1]
    assert judge([A1], [A1, A1], dead=set(), held={A1}).good
    assert not judge([A1], [A1, A1, A1], dead=set(), held={A1}).good


def test_order_is_that_of_a_stream_in_a_chat() -> None:
    assert judge([A1, A2], [A2, A1], dead=set(), held=set()).reordered == [A1]
    assert judge([A2, P1], [A2, P1], dead=set(), held=set()).good


def test_two_runs_of_a_lane_at_a_time() -> None:
    apart = ["start 10 1 7 1", "end 20 1 7 1", "start 20 2 7 2", "end 30 2 7 2"]
    together = ["start 10 1 7 1", "start 15 2 7 2", "end 20 1 7 1", "end 30 2 7 2"]
    assert overlaps(apart, {}) == []
    assert overlaps(together, {}) == [(7, 1, 2)]


def test_a_run_without_an_end_lasts_until_its_process_was_killed() -> None:
    journal = ["start 10 1 7 1", "start 30 2 7 1", "end 40 2 7 1"]
    assert overlaps(journal, {1: 20}) == []
    assert overlaps(journal, {1: 35}) == [(7, 1, 1)]
