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


def times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def keyboard(so_far: int) -> InlineKeyboardMarkup:
    button = InlineKeyboardButton(text=f"Pressed {times(so_far)}", callback_data=Count(so_far=so_far).pack())
    return InlineKeyboardMarkup(inline_keyboard=[[button]])


@router.message(CommandStart())
async def start(message: Message) -> SendMessage:
    name = message.from_user.first_name if message.from_user else "stranger"
    return message.answer(
        f"Hello, {name}! Write anything and it comes back. /fail makes an update fail: see the admin page.",
        reply_markup=keyboard(0),
    )


@router.message(Command("fail"))
async def fail(message: Message) -> None:
    raise ValueError("somebody wrote /fail")


@router.callback_query(Count.filter())
async def count(query: CallbackQuery, callback_data: Count) -> EditMessageText | None:
    await query.answer()
    if not isinstance(query.message, Message):
        return None
    so_far = callback_data.so_far + 1
    return query.message.edit_text(f"One button, pressed {times(so_far)}.", reply_markup=keyboard(so_far))


@router.message(F.text)
async def echo(message: Message) -> SendMessage:
    return message.answer(message.text or "")
