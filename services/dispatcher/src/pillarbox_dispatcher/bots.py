"""The bots of BOT_TOKENS, with one HTTP session for their direct calls."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from aiogram import Bot, Dispatcher
from aiogram.client.default import DefaultBotProperties
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.client.telegram import TelegramAPIServer
from aiogram.exceptions import (
    ClientDecodeError,
    TelegramNetworkError,
    TelegramRetryAfter,
    TelegramServerError,
)

from pillarbox.backoff import Backoff
from pillarbox.errors import SettingError
from pillarbox.ids import BotId
from pillarbox.telemetry import get_logger
from pillarbox_dispatcher.failures import describe
from pillarbox_dispatcher.settings import DispatcherSettings

HOOKS = 10.0
PASSING = (TelegramNetworkError, TelegramServerError, ClientDecodeError)

log = get_logger()


def session(settings: DispatcherSettings) -> AiohttpSession:
    proxy = settings.telegram_proxy.get_secret_value() if settings.telegram_proxy else None
    api = TelegramAPIServer.from_base(settings.telegram_api_base)
    return AiohttpSession(proxy=proxy, api=api, limit=max(100, settings.concurrency))


def bots(
    settings: DispatcherSettings, http: AiohttpSession, defaults: DefaultBotProperties | None
) -> dict[BotId, Bot]:
    return {
        bot_id: Bot(token.get_secret_value(), session=http, default=defaults)
        for bot_id, token in settings.bots.items()
    }


async def start(
    dispatcher: Dispatcher, of: Mapping[BotId, Bot], sleep: Callable[[float], Awaitable[None]]
) -> None:
    """Emits aiogram's startup, again while the Bot API is away. SettingError when a hook itself fails."""
    backoff = Backoff(most=30.0)
    while True:
        try:
            return await dispatcher.emit_startup(**_data(dispatcher, of))
        except TelegramRetryAfter as error:
            wait = float(error.retry_after)
        except PASSING as error:
            wait = backoff.delay()
            log.warning("a startup hook could not reach the Bot API, it is tried again", exc_info=error)
        except Exception as error:
            line = " ".join(describe(error).split())
            raise SettingError(f"HANDLERS: a startup hook failed ({line}); fix the module") from None
        await sleep(wait)


async def stop(dispatcher: Dispatcher, of: Mapping[BotId, Bot]) -> None:
    try:
        async with asyncio.timeout(HOOKS):
            await dispatcher.emit_shutdown(**_data(dispatcher, of))
    except Exception as error:
        log.error("a shutdown hook failed", exc_info=error)


def _data(dispatcher: Dispatcher, of: Mapping[BotId, Bot]) -> dict[str, object]:
    """What aiogram's own polling gives to these hooks."""
    all_bots = list(of.values())
    return {**dispatcher.workflow_data, "dispatcher": dispatcher, "bots": all_bots, "bot": all_bots[-1]}
