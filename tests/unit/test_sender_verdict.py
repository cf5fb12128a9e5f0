"""What becomes of a message after a send."""

from dataclasses import replace
from typing import cast

import pytest
import structlog

from pillarbox.ids import BotId
from pillarbox.outbound.envelope import Envelope, OnDoubt, encode
from pillarbox.outbound.lane import Lane
from pillarbox.said import Parameters, Said
from pillarbox_sender.bot_api import Answer, BotApi, Doubt, NoFile, Outcome, Unsent
from pillarbox_sender.delivery import Delivery
from pillarbox_sender.turn import Claim
from pillarbox_sender.verdict import judge

NOW = 1_800_000_000.0


def claim(
    attempts: int = 0, unsent: int = 0, doubts: int = 0, trial: bool = False, age: float = 1.0
) -> Claim:
    lane = Lane(BotId(7), "interactive", "42")
    return Claim("inc", lane, "1", attempts, unsent, doubts, trial, NOW - age, NOW, b"{}")


def refusal(code: int, description: str = "", **parameters: float) -> Answer:
    given = Parameters(**parameters) if parameters else None
    return Answer(code, Said(ok=False, error_code=code, description=description, parameters=given))


OK = Answer(200, Said(ok=True))
HTML = Answer(502, None, foreign=True)


@pytest.mark.parametrize(
    ("outcome", "verdict", "counted", "health"),
    [
        (OK, "sent", "", "up"),
        (Answer(200, None), "sent", "", "up"),
        (Answer(200, None, foreign=True), "again", "attempts", "down"),
        (Unsent("x"), "again", "unsent", "down"),
        (NoFile(), "dead", "", ""),
        (Doubt("x"), "again", "doubts", "down"),
        (HTML, "again", "attempts", "down"),
        (refusal(500), "again", "attempts", "down"),
        (Answer(302, None), "again", "attempts", "down"),
        (Answer(404, None, foreign=True), "again", "attempts", "down"),
        (Answer(413, None, foreign=True), "dead", "", "up"),
        (refusal(401, "Unauthorized"), "token", "", ""),
        (refusal(429, retry_after=3), "flood", "", "up"),
        (refusal(400, "Bad Request: chat not found"), "dead", "", "up"),
        (refusal(403, "Forbidden: bot was blocked by the user"), "dead", "", "up"),
        (refusal(404, "Not Found: method not found"), "dead", "", "up"),
    ],
)
def test_the_table(outcome: Outcome, verdict: str, counted: str, health: str) -> None:
    end = judge(claim(), Envelope("sendMessage", {}), outcome, 10)
    assert (end.verdict, end.counted, end.health) == (verdict, counted, health)


async def test_the_log_has_the_status_of_a_refusal_and_none_of_its_words() -> None:
    class Refuses:
        async def call(self, *_: object) -> Outcome:
            return refusal(400, "Bad Request: hunter2 is no parse mode")

    with structlog.testing.capture_logs() as lines:
        await Delivery(cast("BotApi", Refuses()), lambda end: None, 10).dispatch(
            replace(claim(), element=encode(Envelope("sendMessage", {"chat_id": 1})))
        )
    (line,) = lines
    assert (line["event"], line["reason"], line["status"]) == ("a message is dead", "refused", 400)
    assert "hunter2" not in str(line)


@pytest.mark.parametrize(
    ("method", "description", "verdict"),
    [
        ("editMessageText", "Bad Request: message is not modified: ...", "sent"),
        ("sendMessage", "Bad Request: message is not modified: ...", "dead"),
        ("deleteMessage", "Bad Request: message to delete not found", "sent"),
        ("deleteMessage", "Bad Request: message can't be deleted", "dead"),
    ],
)
def test_refusals_of_a_purpose_that_is_fulfilled(method: str, description: str, verdict: str) -> None:
    assert judge(claim(), Envelope(method, {}), refusal(400, description), 10).verdict == verdict


@pytest.mark.parametrize(
    ("answer", "least"),
    [
        (refusal(429, retry_after=30), 30.0),
        (Answer(429, None, retry_after=7.0), 7.0),
        (refusal(429, "Too Many Requests: retry after 12"), 12.0),
        (refusal(429, "Too Many Requests"), 5.0),
    ],
)
def test_a_flood_s_wait_is_never_shortened(answer: Answer, least: float) -> None:
    assert least <= judge(claim(), Envelope("sendMessage", {}), answer, 10).delay <= least + 1


def test_passing_errors_are_counted_to_max_retries() -> None:
    envelope = Envelope("sendMessage", {})
    assert judge(claim(attempts=8), envelope, HTML, 10).verdict == "again"
    last = judge(claim(attempts=9), envelope, HTML, 10)
    assert (last.verdict, last.reason) == ("dead", "retries")


def test_a_trial_s_passing_error_is_not_counted_for_a_day() -> None:
    envelope = Envelope("sendMessage", {})
    assert judge(claim(attempts=9, trial=True), envelope, HTML, 10).counted == "unsent"
    assert judge(claim(attempts=9, trial=True, age=90_000), envelope, HTML, 10).verdict == "dead"


@pytest.mark.parametrize(
    ("on_doubt", "doubts", "verdict"),
    [("resend", 0, "again"), ("resend", 1, "dead"), ("drop", 0, "dead"), ("hold", 0, "dead")],
)
def test_in_doubt(on_doubt: OnDoubt, doubts: int, verdict: str) -> None:
    end = judge(claim(doubts=doubts), Envelope("sendMessage", {}, on_doubt=on_doubt), Doubt("x"), 10)
    assert end.verdict == verdict
    assert end.reason == ("doubt" if verdict == "dead" else "")


def test_back_off_grows_to_a_minute() -> None:
    delays = [judge(claim(attempts=n), Envelope("m", {}), HTML, 100).delay for n in range(12)]
    assert 0.5 <= delays[0] <= 1
    assert all(delay <= 60 for delay in delays)
    assert delays[-1] >= 30
