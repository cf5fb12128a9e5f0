"""A bot whose token no sender has is told of once, and again after ten minutes."""

from typing import Any

from structlog.testing import capture_logs

from pillarbox.outbound.depths import BotDepths, Depths
from pillarbox_sender.unserved import SAY_EVERY, Unserved


def depths(paused: str | None) -> Depths:
    bots = {"7": BotDepths({"bulk": 2}, delayed=1, paused=paused), "8": BotDepths()}
    return Depths({}, {}, bots, {}, 0)


def test_one_line_each_ten_minutes_and_at_once_when_it_comes_back() -> None:
    now = 0.0
    unserved = Unserved(lambda: now)

    def said(paused: str | None) -> list[Any]:
        with capture_logs() as lines:
            unserved.look(depths(paused))
        return lines

    (line,) = said("unserved")
    assert (line["bot"], line["waiting"], line["log_level"]) == (7, 3, "warning")
    now = SAY_EVERY - 1
    assert said("unserved") == []
    now = SAY_EVERY
    assert len(said("unserved")) == 1
    assert said("token") == []
    assert len(said("unserved")) == 1
