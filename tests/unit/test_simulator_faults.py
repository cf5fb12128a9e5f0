import json

import msgspec
import pytest

from pillarbox_simulator.answers import Answer, Silence
from pillarbox_simulator.faults import Fault, Faults


def hits(fault: Fault, calls: int = 10, method: str = "sendMessage", chat_id: int = 42) -> list[int]:
    faults = Faults()
    faults.put([fault])
    return [n for n in range(1, calls + 1) if faults.pick(1, method, chat_id) is not None]


@pytest.mark.parametrize(
    ("fault", "hit"),
    [
        (Fault(kind="500"), list(range(1, 11))),
        (Fault(kind="500", nth=3), [3]),
        (Fault(kind="500", nth=[1, 4]), [1, 4]),
        (Fault(kind="500", every=4), [4, 8]),
        (Fault(kind="500", times=2), [1, 2]),
        (Fault(kind="500", method="SENDmessage", times=1), [1]),
        (Fault(kind="500", method="send*", times=1), [1]),
        (Fault(kind="500", method=["editMessageText", "sendMessage"], times=1), [1]),
        (Fault(kind="500", method="getMe"), []),
        (Fault(kind="500", chat_id="42", times=1), [1]),
        (Fault(kind="500", chat_id=43), []),
        (Fault(kind="500", bot_id=2), []),
        (Fault(kind="500", probability=0.0), []),
    ],
)
def test_a_rule_hits_the_calls_that_it_names(fault: Fault, hit: list[int]) -> None:
    assert hits(fault) == hit


def test_a_seed_repeats_a_run() -> None:
    first = hits(Fault(kind="500", probability=0.5, seed=7), 100)
    assert first == hits(Fault(kind="500", probability=0.5, seed=7), 100)
    assert first != hits(Fault(kind="500", probability=0.5, seed=8), 100)
    assert 30 < len(first) < 70


def test_a_rule_without_a_method_spares_getupdates() -> None:
    assert hits(Fault(kind="500"), method="getUpdates") == []
    assert hits(Fault(kind="500", method="getUpdates", times=1), method="getUpdates") == [1]


@pytest.mark.parametrize("kind", ["400", "401", "403", "404", "409", "429", "500"])
def test_a_refusal_has_the_envelope_of_the_bot_api(kind: str) -> None:
    answer = msgspec.convert({"kind": kind}, Fault).answer()
    assert isinstance(answer, Answer)
    body = json.loads(answer.body)
    assert (answer.status, body["ok"], body["error_code"]) == (int(kind), False, int(kind))
    assert "parameters" not in body


def test_a_429_tells_how_long() -> None:
    answer = Fault(kind="429", retry_after=7).answer()
    assert isinstance(answer, Answer)
    assert json.loads(answer.body)["parameters"] == {"retry_after": 7}
    assert (answer.retry_after, json.loads(answer.body)["description"]) == (
        7,
        "Too Many Requests: retry after 7",
    )


def test_a_gateway_answers_html() -> None:
    answer = Fault(kind="502").answer()
    assert isinstance(answer, Answer)
    assert (answer.status, answer.kind) == (502, b"text/html")


def test_silence_is_a_reset_or_a_hang() -> None:
    assert Fault(kind="reset_before").answer() == Silence(0.0)
    assert Fault(kind="hang").answer() == Silence(None)
    assert Fault(kind="hang", seconds=3).answer() == Silence(3)
    assert Fault(kind="reset_after").takes_effect
    assert not Fault(kind="reset_before").takes_effect
