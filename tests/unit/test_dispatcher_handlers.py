"""HANDLERS: what is taken, and the one line for what is not."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiogram.client.default import DefaultBotProperties
from aiogram.fsm.storage.memory import MemoryStorage

from pillarbox.errors import SettingError
from pillarbox_dispatcher import handlers
from pillarbox_dispatcher.unread import leave_out_unread

ROUTER = "from aiogram import Router\nrouter = Router()\n"
SETUP = "def setup(dispatcher):\n    dispatcher['answer'] = 42\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An own current directory; what was imported from it is forgotten."""
    before, path = set(sys.modules), list(sys.path)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    sys.path[:] = path
    for name in set(sys.modules) - before:
        if name.startswith("users_"):
            del sys.modules[name]


def test_a_router_of_the_current_directory(folder: Path) -> None:
    (folder / "users_bot.py").write_text(ROUTER)
    built = handlers.dispatcher(handlers.module("users_bot"), MemoryStorage())
    assert len(built.sub_routers) == 1


def test_a_module_in_a_package_with_setup(folder: Path) -> None:
    (folder / "users_package").mkdir()
    (folder / "users_package" / "bot.py").write_text(SETUP)
    built = handlers.dispatcher(handlers.module("users_package.bot"), MemoryStorage())
    assert built["answer"] == 42


def test_defaults_for_all_that_the_handlers_send(folder: Path) -> None:
    (folder / "users_html.py").write_text(
        ROUTER + "from aiogram.client.default import DefaultBotProperties\n"
        "bot_defaults = DefaultBotProperties(parse_mode='HTML')\n"
    )
    (folder / "users_plain.py").write_text(ROUTER)
    assert handlers.bot_defaults(handlers.module("users_html")) == DefaultBotProperties(parse_mode="HTML")
    assert handlers.bot_defaults(handlers.module("users_plain")) is None


def load(name: str) -> None:
    module = handlers.module(name)
    handlers.bot_defaults(module)
    handlers.dispatcher(module, MemoryStorage())


CASES = [
    ("", "users_bot cannot be imported (ModuleNotFoundError: No module named 'users_bot')"),
    ("import users_missing", "(ModuleNotFoundError: No module named 'users_missing' at users_bot.py:1)"),
    ("def broken(:\n", "cannot be imported (SyntaxError: "),
    ("x = 1\nraise KeyError('two\\nlines')", "(KeyError: 'two\\nlines' at users_bot.py:2)"),
    ("raise ValueError('12345678:' + 'A' * 35)", "(ValueError: *** at users_bot.py:1)"),
    ("import sys\nsys.exit(1)", "cannot be imported (SystemExit: 1 at users_bot.py:2)"),
    ("x = 1", "has no `router` (aiogram Router) and no `setup(dispatcher)`"),
    ("router = 1", "has no `router`"),
    (
        "def setup(dispatcher):\n    raise OSError('no file')",
        "cannot be set up (OSError: no file at users_bot.py:2)",
    ),
    ("async def setup(dispatcher):\n    pass", "cannot be set up (TypeError: `setup` must not be async"),
    (ROUTER + "bot_defaults = {}", "users_bot.bot_defaults is no DefaultBotProperties"),
]


@pytest.mark.parametrize(("source", "problem"), CASES, ids=[problem[:40] for _, problem in CASES])
def test_one_line_that_names_the_problem(folder: Path, source: str, problem: str) -> None:
    if source:
        (folder / "users_bot.py").write_text(source)
    with pytest.raises(SettingError) as refused:
        load("users_bot")
    line = str(refused.value)
    assert line.startswith("HANDLERS: ")
    assert problem in line
    assert "\n" not in line


SEES = [
    ("", False),
    ("@router.message()\nasync def run(message, outbox, bot): ...\n", False),
    ("@router.message(Command('x'), F.text)\nasync def run(message): ...\n", False),
    ("@router.errors()\nasync def run(event): ...\n", False),
    ("@router.message()\nasync def run(message, state): ...\n", True),
    ("@router.message()\nasync def run(message, **data): ...\n", True),
    ("@router.message(StateFilter('x'))\nasync def run(message): ...\n", True),
    ("@router.message(~StateFilter('x'))\nasync def run(message): ...\n", True),
    ("router.message.filter(StateFilter('x'))\n", True),
    ("@router.callback_query(lambda query, raw_state: True)\nasync def run(query): ...\n", True),
    ("@router.errors()\nasync def run(event, state): ...\n", True),
    ("@router.message.middleware()\nasync def run(handler, event, data): ...\n", True),
    ("@router.update.outer_middleware()\nasync def run(handler, event, data): ...\n", True),
    (
        "inner = Router()\nrouter.include_router(inner)\n@inner.poll()\nasync def run(poll, state): ...\n",
        True,
    ),
]


@pytest.mark.parametrize(("source", "sees"), SEES, ids=[source or "nothing" for source, _ in SEES])
def test_states_are_read_only_for_handlers_that_can_see_them(folder: Path, source: str, sees: bool) -> None:
    head = "from aiogram import F, Router\nfrom aiogram.filters import Command, StateFilter\n"
    if "router.update" in source:
        text = "def setup(router):\n" + "".join(f"    {line}\n" for line in source.splitlines())
    else:
        text = "router = Router()\n" + source
    (folder / "users_bot.py").write_text(head + text)
    built = handlers.dispatcher(handlers.module("users_bot"), MemoryStorage())
    assert leave_out_unread(built) is not sees
    assert (built.fsm in built.update.outer_middleware) is sees
