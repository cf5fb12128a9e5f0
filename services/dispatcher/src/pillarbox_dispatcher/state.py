"""aiogram's FSM storage on the inbox's database.

Inside a run, writes wait for the run's end and are part of it; outside of one, in a startup hook or in a task
that a handler left behind, they are written at once. What one pass of the loop asks for is read together.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, Protocol

from aiogram.fsm.state import State
from aiogram.fsm.storage.base import DEFAULT_DESTINY, BaseStorage, StateType, StorageKey
from aiogram.fsm.storage.memory import DisabledEventIsolation

from pillarbox.backoff import Backoff
from pillarbox.errors import StorageUnavailable
from pillarbox.ids import BotId
from pillarbox.inbox import FsmKey, FsmValue, FsmWrite
from pillarbox_dispatcher.current import current
from pillarbox_dispatcher.retry import StateUnavailable
from pillarbox_dispatcher.states import States, Written

AGAIN = 2.0

Answer = asyncio.Future[FsmValue]


class Fsm(Protocol):
    """The part of `pillarbox.inbox.Storage` that keeps FSM state; its promises are written there."""

    async def read_fsm(self, keys: Sequence[FsmKey]) -> list[FsmValue]: ...

    async def write_fsm(self, writes: Sequence[FsmWrite]) -> bool: ...


class StateStorage(BaseStorage):
    """Holds a read back for `patience` seconds while the database is away; then the update runs later."""

    def __init__(self, fsm: Fsm, patience: float = 10.0) -> None:
        self._fsm = fsm
        self._reads = Reads(fsm, patience)

    async def get_state(self, key: StorageKey) -> str | None:
        return (await self._get(_key(key)))[0]

    async def set_state(self, key: StorageKey, state: StateType = None) -> None:
        name = state.state if isinstance(state, State) else state
        await self._put(_key(key), name if name is None else _text(name), ...)

    async def get_data(self, key: StorageKey) -> dict[str, Any]:
        data = (await self._get(_key(key)))[1]
        return {} if data is None else json.loads(data.decode())

    async def set_data(self, key: StorageKey, data: Mapping[str, Any]) -> None:
        """TypeError for what JSON cannot hold."""
        await self._put(_key(key), ..., json.dumps(dict(data)).encode() if data else None)

    async def close(self) -> None:
        """The connection is the process's own, and closed by it."""

    async def _get(self, key: FsmKey) -> Written:
        if (run := current()) is None:
            value = await self._reads.read(key)
            return value.state, value.data
        if not run.states.knows(key):
            await self._learn(run.states, key)
        return run.states.get(key)

    async def _learn(self, states: States, key: FsmKey) -> None:
        try:
            states.learn(key, await self._reads.read(key))
        except StorageUnavailable as error:
            raise StateUnavailable(AGAIN) from error

    async def _put(self, key: FsmKey, state: Any, data: Any) -> None:
        """`...` is what is there already."""
        if (run := current()) is None:
            await self._put_now(key, state, data)
        else:
            old = await self._get(key)
            run.states.put(key, *_over(old, state, data))

    async def _put_now(self, key: FsmKey, state: Any, data: Any) -> None:
        written = False
        while not written:
            value = await self._reads.read(key)
            new = _over((value.state, value.data), state, data)
            written = await self._fsm.write_fsm([FsmWrite(key, value.version, *new)])


class Unlocked(DisabledEventIsolation):
    """Lanes run one update at a time. aiogram's own way to lock nothing costs as much as reading a state."""

    _free: AbstractAsyncContextManager[None] = nullcontext()

    def lock(self, key: StorageKey) -> AbstractAsyncContextManager[None]:  # type: ignore[override]
        return self._free


class Reads:
    """Of one pass of the loop, in one query."""

    def __init__(self, fsm: Fsm, patience: float) -> None:
        self._fsm = fsm
        self._patience = patience
        self._asked: list[tuple[FsmKey, Answer]] = []
        self._tasks: set[asyncio.Task[None]] = set()

    def read(self, key: FsmKey) -> Answer:
        loop = asyncio.get_running_loop()
        answer: Answer = loop.create_future()
        if not self._asked:
            loop.call_soon(self._start)
        self._asked.append((key, answer))
        return answer

    def _start(self) -> None:
        asked, self._asked = self._asked, []
        task = asyncio.ensure_future(self._read(asked))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _read(self, asked: list[tuple[FsmKey, Answer]]) -> None:
        try:
            values = await self._patiently([key for key, _ in asked])
        except Exception as error:  # it belongs to those who asked
            for _, answer in asked:
                if not answer.done():
                    answer.set_exception(error)
            return
        for (_, answer), value in zip(asked, values, strict=True):
            if not answer.done():
                answer.set_result(value)

    async def _patiently(self, keys: list[FsmKey]) -> list[FsmValue]:
        backoff, loop = Backoff(most=1.0), asyncio.get_running_loop()
        until = loop.time() + self._patience
        while True:
            try:
                return await self._fsm.read_fsm(keys)
            except StorageUnavailable:
                if loop.time() >= until:
                    raise
            await asyncio.sleep(backoff.delay())


def _over(old: Written, state: Any, data: Any) -> Written:
    return old[0] if state is ... else state, old[1] if data is ... else data


def _key(key: StorageKey) -> FsmKey:
    """Named like the lane, where the lane is a person's: that value has come with the lease."""
    chat, user = key.chat_id, key.user_id
    name = f"chat:{chat}" if chat == user else f"chat:{chat}:user:{user}"
    if key.thread_id or key.business_connection_id or key.destiny != DEFAULT_DESTINY:
        name += f":{key.thread_id or ''}:{key.business_connection_id or ''}:{key.destiny}"
        name = _text(name)
    return FsmKey(BotId(key.bot_id), name)


def _text(name: str) -> str:
    """What every database takes as text."""
    try:
        name.encode()
    except UnicodeEncodeError:
        raise ValueError("the name of a state or destiny is no valid text") from None
    if "\0" in name:
        raise ValueError("the name of a state or destiny holds a NUL")
    return name


def patience(handler_timeout: float) -> float:
    """Waiting for the database must not use up the handlers' own time."""
    return min(10.0, handler_timeout / 2) if handler_timeout else 10.0
