"""Asks for a paused bot whether the Bot API answers it again."""

from collections.abc import Callable

from pillarbox.errors import QueueUnavailable
from pillarbox.ids import BotId
from pillarbox.telemetry import get_logger
from pillarbox_sender.bot_api import Answer, BotApi
from pillarbox_sender.turn import Turns

log = get_logger()


class Probe:
    def __init__(self, api: BotApi, turns: Turns) -> None:
        self._api = api
        self._turns = turns

    async def ask(self, bot: BotId, wake: Callable[[], None]) -> None:
        """getMe; once it is answered the bot goes on. One that fails is asked again when its time comes."""
        outcome = await self._api.call(bot, "getMe")
        if not isinstance(outcome, Answer) or outcome.body is None or not outcome.body.ok:
            return
        try:
            await self._turns.probed(bot)
        except QueueUnavailable as error:
            log.warning("a probe could not be told to the queue", error=str(error))
            return
        log.info("the Bot API answers again", bot=bot)
        wake()
