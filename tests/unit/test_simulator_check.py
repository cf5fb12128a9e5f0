import pytest

from pillarbox_simulator.check import check, expected_of, spread
from pillarbox_simulator.ledger import Entry
from pillarbox_simulator.limits import Limits

OFF = Limits()


def sent(*texts: str, effect: bool = True) -> list[Entry]:
    return [
        Entry(1, "sendMessage", {"chat_id": 42, "text": text}, float(at), 200, effect)
        for at, text in enumerate(texts)
    ]


def test_all_there_in_order_is_nothing_to_report() -> None:
    found = check(sent("#42:1", "you said #42:2", "#a42:1"), OFF, {"42": 2, "a42": 1})
    assert found["counts"] == {
        "lost": 0,
        "doubled": 0,
        "reordered": 0,
        "unexpected": 0,
        "limits_broken": 0,
        "retry_after_ignored": 0,
    }
    assert found["seen"] == 3


def test_a_missing_marker_is_lost() -> None:
    assert check(sent("#42:1", "#42:3"), OFF, {"42": 4, "-7": 1})["lost"] == ["#42:2", "#42:4", "#-7:1"]
    assert check(sent("#42:1", "#42:3"), OFF)["lost"] == ["#42:2"]


def test_a_call_without_effect_is_not_seen() -> None:
    assert check(sent("#42:1", effect=False), OFF, {"42": 1})["lost"] == ["#42:1"]


def test_a_copy_is_doubled_and_at_its_place_in_order() -> None:
    found = check(sent("#42:1", "#42:1", "#42:2"), OFF, {"42": 2})
    assert found["doubled"] == {"#42:1": 2}
    assert found["reordered"] == []


def test_an_earlier_number_after_a_later_one_is_reordered_within_its_stream_only() -> None:
    found = check(sent("#42:2", "#b42:1", "#43:1", "#42:1"), OFF)
    assert found["reordered"] == [{"marker": "#42:1", "after": "#42:2"}]


def test_more_than_was_expected_is_unexpected() -> None:
    assert check(sent("#42:1", "#42:2", "#9:1"), OFF, {"42": 1})["unexpected"] == ["#42:2", "#9:1"]


def test_expected_takes_ranges() -> None:
    assert expected_of("42:10, a1..3:5") == {"42": 10, "a1..3": 5}
    assert spread({"a1..3": 5, "-100": 2}) == {"a1": 5, "a2": 5, "a3": 5, "-100": 2}
    with pytest.raises(ValueError, match="is no stream"):
        spread({"x y": 1})


def calls(chat_id: int, *times: float) -> list[Entry]:
    return [Entry(1, "sendMessage", {"chat_id": chat_id, "text": "x"}, at, 200, True) for at in times]


def test_a_limit_is_judged_when_it_is_watched() -> None:
    burst = calls(42, 0.0, 0.1, 0.2, 0.3)
    assert check(burst, OFF)["limits_broken"] == []
    broken = check(burst, Limits(mode="watched"))["limits_broken"]
    assert [(entry["limit"], entry["at"]) for entry in broken] == [("chat", 0.3)]


def test_a_group_has_twenty_in_any_minute() -> None:
    watched = Limits(mode="watched")
    within = calls(-5, *(float(n) for n in range(20)), 60.0, 61.0)
    assert check(within, watched)["limits_broken"] == []
    beyond = calls(-5, *(float(n) for n in range(20)), 59.9)
    assert [entry["at"] for entry in check(beyond, watched)["limits_broken"]] == [59.9]


def test_a_call_before_retry_after_ended_ignored_it() -> None:
    refused = Entry(1, "sendMessage", {"chat_id": 42}, 10.0, 429, retry_after=5)
    early = [refused, *calls(42, 10.1, 12.0, 15.0), *calls(43, 11.0)]
    assert [entry["at"] for entry in check(early, OFF)["retry_after_ignored"]] == [12.0]


@pytest.mark.parametrize(
    "words", ["a1..99999999999:5", "1:99999999999", "a1..2000:1001", "a1..1000000:1,b1..1000001:1"]
)
def test_more_markers_than_can_be_looked_for_are_refused(words: str) -> None:
    with pytest.raises(ValueError, match="2,000,000"):
        spread(expected_of(words))


def test_a_load_of_two_million_markers_is_looked_for() -> None:
    assert len(spread(expected_of("a1..20000:100"))) == 20_000
