"""The control plane under `/_ctl`, which people and tests share."""

from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from pillarbox_simulator.asked import (
    BotAsked,
    ChatAsked,
    CheckAsked,
    ClockSet,
    FaultAsked,
    FaultSet,
    Happened,
    LedgerAsked,
    Opened,
    Pressed,
    Reset,
    WaitAsked,
    Written,
)
from pillarbox_simulator.bots import Bot
from pillarbox_simulator.chats import Chat
from pillarbox_simulator.check import check, expected_of
from pillarbox_simulator.ledger import Query
from pillarbox_simulator.limits import Limits
from pillarbox_simulator.people import Unknown
from pillarbox_simulator.simulator import Simulator
from pillarbox_simulator.webhook import info

LONGEST_WAIT = 600.0


Reply = tuple[int, Any]
Action = Callable[[bytes, bytes], Awaitable[Reply]]


class Control:
    """`answer` takes method, path, query and body, and gives a status and what becomes JSON."""

    def __init__(self, simulator: Simulator) -> None:
        self._simulator = simulator
        self._actions: dict[tuple[str, str], Action] = {
            ("GET", "bots"): self._bots,
            ("GET", "chats"): self._chats,
            ("POST", "chats"): self._open_chat,
            ("GET", "history"): self._history,
            ("POST", "messages"): self._write,
            ("POST", "callbacks"): self._press,
            ("POST", "updates"): self._happen,
            ("GET", "ledger"): self._ledger,
            ("GET", "wait"): self._wait,
            ("GET", "check"): self._check_words,
            ("POST", "check"): self._check,
            ("GET", "faults"): self._show_faults,
            ("PUT", "faults"): self._put_faults,
            ("DELETE", "faults"): self._remove_faults,
            ("GET", "limits"): self._show_limits,
            ("PUT", "limits"): self._put_limits,
            ("GET", "clock"): self._show_clock,
            ("PUT", "clock"): self._put_clock,
            ("POST", "reset"): self._reset,
        }

    async def answer(self, method: str, path: str, query: bytes, body: bytes) -> Reply:
        """400 for what cannot be read, 404 for what does not exist; both say what is wrong."""
        action = self._actions.get((method, path))
        if action is None:
            known = sorted(m for m, p in self._actions if p == path)
            return (
                (405, _wrong(f"use {' or '.join(known)}"))
                if known
                else (404, _wrong(f"no such call: {path}"))
            )
        try:
            return await action(query, body)
        except (msgspec.ValidationError, msgspec.DecodeError, ValueError) as error:
            return 400, _wrong(str(error))
        except RecursionError:
            return 400, _wrong("it is nested too deeply")
        except Unknown as error:
            return 404, _wrong(str(error))

    def _bot(self, bot_id: int) -> Bot:
        bot = self._simulator.bots.find(bot_id)
        if bot is None:
            raise Unknown(f"bot {bot_id} is not known: it did not call, and nobody wrote to it")
        return bot

    def _spoken_to(self, bot_id: int) -> Bot:
        bot = self._simulator.bots.spoken_to(bot_id)
        if bot is None:
            raise Unknown(f"bot {bot_id} is not in BOT_TOKENS")
        return bot

    async def _bots(self, query: bytes, body: bytes) -> Reply:
        return 200, {"bots": [_shown(bot) for bot in self._simulator.bots]}

    async def _chats(self, query: bytes, body: bytes) -> Reply:
        chats = self._bot(_query(query, BotAsked).bot_id).chats
        return 200, {"chats": [_shown_chat(chat) for chat in chats]}

    async def _open_chat(self, query: bytes, body: bytes) -> Reply:
        asked = msgspec.json.decode(body, type=Opened)
        if asked.chat_id == 0:
            raise ValueError("chat_id 0 is no chat: people have positive ids, groups negative ones")
        return 200, _shown_chat(self._spoken_to(asked.bot_id).chats.get(asked.chat_id, asked.name))

    async def _history(self, query: bytes, body: bytes) -> Reply:
        asked = _query(query, ChatAsked)
        chat = self._bot(asked.bot_id).chats.by_id.get(asked.chat_id)
        if chat is None:
            raise Unknown(f"chat {asked.chat_id} is not known to bot {asked.bot_id}")
        return 200, {"messages": list(chat.messages.values()), "keyboard": chat.keyboard}

    async def _write(self, query: bytes, body: bytes) -> Reply:
        asked = msgspec.json.decode(body, type=Written | list[Written])
        if isinstance(asked, Written):
            return 200, self._written(asked)
        for one in asked:
            self._spoken_to(one.bot_id)
        return 200, [self._written(one) for one in asked]

    def _written(self, asked: Written) -> dict[str, Any]:
        bot = self._spoken_to(asked.bot_id)
        update_id, message = self._simulator.people.write(
            bot, asked.chat_id, asked.text, asked.user_id, asked.name
        )
        return {"update_id": update_id, "message_id": message["message_id"]}

    async def _press(self, query: bytes, body: bytes) -> Reply:
        asked = msgspec.json.decode(body, type=Pressed)
        update_id, query_id = self._simulator.people.press(
            self._bot(asked.bot_id), asked.chat_id, asked.message_id, asked.data, asked.user_id
        )
        return 200, {"update_id": update_id, "callback_query_id": query_id}

    async def _happen(self, query: bytes, body: bytes) -> Reply:
        asked = msgspec.json.decode(body, type=Happened | list[Happened])
        many = [asked] if isinstance(asked, Happened) else asked
        ids = [self._happened(one) for one in many]
        return 200, ids if isinstance(asked, list) else ids[0]

    def _happened(self, asked: Happened) -> dict[str, Any]:
        update_id = asked.update.get("update_id")
        if update_id is not None and not isinstance(update_id, int):
            raise ValueError("update_id is a number")
        if len(asked.update.keys() - {"update_id"}) != 1:
            raise ValueError("an update has one key besides update_id: its kind")
        update = {kind: event for kind, event in asked.update.items() if kind != "update_id"}
        return {"update_id": self._simulator.people.happen(self._spoken_to(asked.bot_id), update, update_id)}

    async def _ledger(self, query: bytes, body: bytes) -> Reply:
        asked = _query(query, LedgerAsked)
        ledger = self._simulator.ledger
        return 200, {
            "calls": ledger.find(asked, asked.limit),
            "total": ledger.total,
            "trimmed": ledger.trimmed,
        }

    async def _wait(self, query: bytes, body: bytes) -> Reply:
        asked = _query(query, WaitAsked)
        met = await self._simulator.ledger.wait(asked, asked.count, min(asked.timeout, LONGEST_WAIT))
        calls = self._simulator.ledger.find(asked)
        return (200 if met else 408), {"met": met, "calls": calls}

    async def _check_words(self, query: bytes, body: bytes) -> Reply:
        words = dict(parse_qsl(query.decode()))
        asked = words.pop("expected", "").strip()
        expected: dict[str, int] | None = None
        if asked.startswith("{"):
            expected = msgspec.json.decode(asked, type=dict[str, int])
        elif asked:
            expected = expected_of(asked)
        return self._checked(msgspec.convert({**words, "expected": expected}, CheckAsked, strict=False))

    async def _check(self, query: bytes, body: bytes) -> Reply:
        return self._checked(msgspec.json.decode(body or b"{}", type=CheckAsked))

    def _checked(self, asked: CheckAsked) -> Reply:
        calls = self._simulator.ledger.find(Query(bot_id=asked.bot_id, after=asked.after))
        return 200, check(calls, self._simulator.limiter.limits, asked.expected)

    async def _show_faults(self, query: bytes, body: bytes) -> Reply:
        return 200, {"faults": self._simulator.faults.shown()}

    async def _put_faults(self, query: bytes, body: bytes) -> Reply:
        asked = msgspec.json.decode(body)
        if isinstance(asked, dict):
            asked = asked if "faults" in asked else {"faults": [asked]}
        faults = msgspec.convert(asked if isinstance(asked, dict) else {"faults": asked}, FaultSet)
        self._simulator.faults.put(faults.faults)
        return await self._faults_changed()

    async def _remove_faults(self, query: bytes, body: bytes) -> Reply:
        self._simulator.faults.remove(_query(query, FaultAsked).id)
        return await self._faults_changed()

    async def _faults_changed(self) -> Reply:
        shown = self._simulator.faults.shown()
        self._simulator.changes.publish("faults", 0, shown)
        return 200, {"faults": shown}

    async def _show_limits(self, query: bytes, body: bytes) -> Reply:
        return 200, self._simulator.limiter.limits

    async def _put_limits(self, query: bytes, body: bytes) -> Reply:
        limits = msgspec.json.decode(body, type=Limits)
        wrong = [
            name for name, value in msgspec.structs.asdict(limits).items() if name != "mode" and value <= 0
        ]
        if wrong:
            raise ValueError(f"{' and '.join(wrong)} must be above 0")
        self._simulator.limiter.put(limits)
        return 200, self._simulator.limiter.limits

    async def _show_clock(self, query: bytes, body: bytes) -> Reply:
        clock = self._simulator.clock
        return 200, {"scale": clock.scale, "deadline": clock.deadline, "now": clock.now()}

    async def _put_clock(self, query: bytes, body: bytes) -> Reply:
        asked = msgspec.json.decode(body, type=ClockSet)
        if not all(value is None or value > 0 for value in (asked.scale, asked.deadline)):
            raise ValueError("scale and deadline are above 0")
        clock = self._simulator.clock
        clock.scale = asked.scale or clock.scale
        clock.deadline = asked.deadline or clock.deadline
        return await self._show_clock(query, body)

    async def _reset(self, query: bytes, body: bytes) -> Reply:
        asked = msgspec.json.decode(body or b"{}", type=Reset)
        await self._simulator.reset(webhooks=asked.webhooks)
        return 200, {"reset": True}


def _query(query: bytes, kind: type[Any]) -> Any:
    """Strings from the query become what the type asks for; an empty one is left out."""
    return msgspec.convert(dict(parse_qsl(query.decode())), kind, strict=False)


def _wrong(problem: str) -> dict[str, str]:
    return {"error": problem}


def _shown(bot: Bot) -> dict[str, Any]:
    return {
        "bot_id": bot.id,
        "name": bot.user["first_name"],
        "username": bot.user["username"],
        "commands": bot.commands,
        "webhook": info(bot),
    }


def _shown_chat(chat: Chat) -> dict[str, Any]:
    last = next(reversed(chat.messages.values()), None)
    return {"chat_id": chat.id, "name": chat.name, "type": chat.face["type"], "last": last}
