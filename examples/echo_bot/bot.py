"""A bot of four handlers. What a handler returns is sent once, in order, however often the handler ran."""

from aiogram import F, Router
from aiogram.filters import Command, CommandStart
from aiogram.filters.callback_data import CallbackData
from aiogram.methods import EditMessageText, SendMessage
from aiogram.types import CallbackQuery, InlineKeyboardButton, InlineKeyboardMarkup, Message

router = Router(name="echo")


class Count(CallbackData, prefix="count"):
    """What the button carries: so the bot has nothing to remember."""

    so_far: int


def keyboard(so_far: int) -> InlineKeyboardMarkup:
    button = InlineKeyboardButton(text=f"Pressed {so_far} times", callback_data=Count(so_far=so_far).pack())
    return InlineKeyboardMarkup(inline_keyboard=[[button]])


@router.message(CommandStart())
async def start(message: Message) -> SendMessage:
    name = message.from_user.first_name if message.from_user else "stranger"
    return message.answer(
        f"Hello, {name}! Write anything and it comes back. /fail shows what a failed update is.",
        reply_markup=keyboard(0),
    )


@router.message(Command("fail"))
async def fail(message: Message) -> None:
    raise ValueError("asked for with /fail: see the admin page, retry it or discard it there")


@router.callback_query(Count.filter())
async def count(query: CallbackQuery, callback_data: Count) -> EditMessageText | None:
    await query.answer()
    if not isinstance(query.message, Message):
        return None
    return query.message.edit_text(
        f"One button, {callback_data.so_far + 1} presses.", reply_markup=keyboard(callback_data.so_far + 1)
    )


@router.message(F.text)
async def echo(message: Message) -> SendMessage:
    return message.answer(message.text or "")
