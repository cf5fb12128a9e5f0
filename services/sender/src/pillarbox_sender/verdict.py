"""What becomes of a message after a send: the table of DESIGN, Outbound 4 and 5."""

import random
import re
from dataclasses import replace

from pillarbox.outbound.envelope import Envelope
from pillarbox.said import LONGEST_WAIT as LONGEST_FLOOD
from pillarbox.said import Said, bounded
from pillarbox.telemetry import get_logger
from pillarbox_sender.bot_api import Answer, Doubt, NoFile, Outcome, Unsent
from pillarbox_sender.turn import Claim, End

log = get_logger()

DAY = 86400.0
LONGEST_WAIT = 60.0
UNKNOWN_WAIT = 5.0
PROBE_TOKEN_AFTER = 5.0
FINAL_ANYHOW = frozenset({413})
MOST_WORD = 64

DONE_ANYWAY = (
    (re.compile(r"edit\w*", re.IGNORECASE), "message is not modified"),
    (re.compile(r"deletemessages?", re.IGNORECASE), "message to delete not found"),
)
"""Refusals of a call whose purpose is fulfilled: the text shows what it should, the message is gone."""


def judge(claim: Claim, envelope: Envelope, outcome: Outcome, max_retries: int) -> End:
    end = _judged(claim, envelope, outcome, max_retries)
    return end if end.verdict == "sent" else replace(end, error=error_of(outcome))


def error_of(outcome: Outcome) -> str:
    """Kind and status, or the error's type: one word, none of the answer's."""
    match outcome:
        case Answer():
            return f"answered:{_status(outcome)}"
        case Unsent() | Doubt():
            word = re.sub(r"\W+", "_", outcome.error, flags=re.ASCII)[:MOST_WORD]
            return f"{'unsent' if isinstance(outcome, Unsent) else 'doubt'}:{word}"
        case NoFile():
            return "unsent:file_gone"


def _judged(claim: Claim, envelope: Envelope, outcome: Outcome, max_retries: int) -> End:
    match outcome:
        case Unsent():
            return End(claim, "again", _backoff(claim.unsent), "unsent", health="down")
        case Doubt():
            return in_doubt(claim, envelope)
        case NoFile():
            return End(claim, "dead", reason="file_gone")
        case Answer():
            return _answered(claim, envelope, outcome, max_retries)


def in_doubt(claim: Claim, envelope: Envelope) -> End:
    """One copy more where the message allows it, and only one."""
    if envelope.on_doubt == "resend" and claim.doubts == 0:
        return End(claim, "again", 1.0, "doubts", health="down")
    return End(claim, "dead", reason="doubt", detail=envelope.on_doubt, health="down")


def _answered(claim: Claim, envelope: Envelope, answer: Answer, max_retries: int) -> End:
    status = _status(answer)
    if 200 <= status < 300 and not answer.foreign and (answer.body is None or answer.body.ok):
        return End(claim, "sent", health="up")
    if status == 429:
        return End(claim, "flood", _retry_after(answer) + random.uniform(0.05, 0.5), health="up")  # noqa: S311
    if status == 401:
        return End(claim, "token", PROBE_TOKEN_AFTER)
    if status >= 500 or status < 400 or (answer.body is None and status not in FINAL_ANYHOW):
        return _passing(claim, status, max_retries)
    return _refused(claim, envelope, answer, status)


def _status(answer: Answer) -> int:
    if answer.body is not None and not answer.body.ok and answer.body.error_code:
        return answer.body.error_code
    return answer.status


def _passing(claim: Claim, status: int, max_retries: int) -> End:
    """Also what is no answer of a Bot API at all: a proxy's page says nothing about the message."""
    if claim.trial and claim.now - claim.filed < DAY:
        return End(claim, "again", _backoff(claim.unsent), "unsent", health="down")
    if claim.attempts + 1 >= max_retries:
        detail = f"last answer: {status}"
        return End(claim, "dead", reason="retries", detail=detail, health="down", status=status)
    return End(claim, "again", _backoff(claim.attempts), "attempts", health="down")


def _refused(claim: Claim, envelope: Envelope, answer: Answer, status: int) -> End:
    said = answer.body or Said()
    lower = said.description.lower()
    if status == 400 and any(m.fullmatch(envelope.method) and text in lower for m, text in DONE_ANYWAY):
        return End(claim, "sent", health="up")
    detail = f"{status} {said.words}"[:300]
    return End(claim, "dead", reason="refused", detail=detail, health="up", status=status)


def _retry_after(answer: Answer) -> float:
    """From the parameters, else the header, else the text."""
    said = answer.body or Said()
    given = answer.retry_after
    if given is None or (said.parameters is not None and said.parameters.retry_after is not None):
        given = said.retry_after
    if given is None or given < 0:
        return UNKNOWN_WAIT
    if given > LONGEST_FLOOD:
        log.warning("the Bot API asks for a pause of more than a day; it is asked again after one")
    return bounded(given)


def _backoff(before: int) -> float:
    most = min(LONGEST_WAIT, 2.0 ** min(before, 10))
    return random.uniform(0.5, 1.0) * most  # noqa: S311 - jitter, no secret
