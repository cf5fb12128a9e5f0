"""The yardstick of the reply bench: aiogram's own webhook server, answering directly, storing nothing."""

import os

from aiogram import Bot, Dispatcher, Router
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.client.telegram import TelegramAPIServer
from aiogram.types import Message
from aiogram.webhook.aiohttp_server import SimpleRequestHandler
from aiohttp import web

router = Router()


@router.message()
async def echo(message: Message) -> None:
    await message.answer(message.text or "")


def main() -> None:
    api = TelegramAPIServer.from_base(os.environ["TELEGRAM_API_BASE"])
    bot = Bot(os.environ["BOT_TOKENS"], session=AiohttpSession(api=api))
    dispatcher = Dispatcher()
    dispatcher.include_router(router)
    app = web.Application()
    secret = os.environ["WEBHOOK_SECRET"]
    SimpleRequestHandler(dispatcher, bot, secret_token=secret).register(app, "/webhook")
    web.run_app(app, host="127.0.0.1", port=int(os.environ["YARDSTICK_PORT"]), print=None)


if __name__ == "__main__":
    main()
