"""A bot that answers each message with its own text; both sides of the reply bench run it."""

from aiogram import Router
from aiogram.methods import SendMessage
from aiogram.types import Message

router = Router()


@router.message()
async def echo(message: Message) -> SendMessage:
    return message.answer(message.text or "")
