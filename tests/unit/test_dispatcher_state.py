"""FSM state in handlers: when it is seen, when it is written, and when it is not."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
from aiogram import Dispatcher, F, Router
from aiogram.filters import StateFilter
from aiogram.fsm.context import FSMContext
from aiogram.fsm.scene import Scene, SceneRegistry, on
from aiogram.fsm.state import State, StatesGroup
from aiogram.fsm.storage.base import StorageKey
from aiogram.types import ErrorEvent, Message

from pillarbox.errors import StorageUnavailable
from pillarbox.ids import BotId
from pillarbox.inbox import End, Failed, Finished, FsmKey, FsmValue, Later
from pillarbox.inbox.memory import MemoryStorage
from pillarbox_dispatcher import RetryUpdate, handlers
from pillarbox_dispatcher.runs import Runs
from pillarbox_dispatcher.state import StateStorage
from tests.support.runs import BOT, lease
from tests.support.updates import message

KEY = FsmKey(BotId(42), "chat:5")
STORAGE_KEY = StorageKey(bot_id=42, chat_id=5, user_id=5)

Handler = Callable[..., Awaitable[Any]]


class Form(StatesGroup):
    city = State()


class Inbox(MemoryStorage):
    """Counts the reads, and is away when a test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[int] = []
        self.away = False

    async def read_fsm(self, keys: Sequence[FsmKey]) -> list[FsmValue]:
        self.reads.append(len(keys))
        if self.away:
            raise StorageUnavailable("switched off")
        return await super().read_fsm(keys)


def built(router: Router, inbox: Inbox) -> Dispatcher:
    module = type(handlers)("bot")
    module.router = router  # type: ignore[attr-defined]
    return handlers.dispatcher(module, StateStorage(inbox, patience=0.05))


def of(*registered: Handler) -> Router:
    router = Router()
    for handler in registered:
        router.message.register(handler)
    return router


async def run(router: Router, inbox: Inbox, *, timeout: float = 5.0) -> End:
    return await again(Runs(built(router, inbox), {BotId(42): BOT}, timeout=timeout), inbox)


async def again(runs: Runs, inbox: Inbox, text: str = "x") -> End:
    """One run; its writes are written as the finish would."""
    end = await runs.handle(lease(message(1, 5, text)))
    if isinstance(end, Finished):
        assert await inbox.write_fsm(end.fsm)
    return end


async def kept(inbox: Inbox) -> FsmValue:
    (value,) = await inbox.read_fsm([KEY])
    return value


async def test_a_run_sees_its_own_writes_and_nobody_else_does_before_its_end() -> None:
    inbox = Inbox()

    async def answer(message: Message, state: FSMContext) -> None:
        await state.set_state(Form.city)
        await state.update_data(city="Zürich")
        await state.update_data(n=1)
        assert await state.get_state() == "Form:city"
        assert await state.get_data() == {"city": "Zürich", "n": 1}
        assert await state.get_value("n") == 1
        assert (await kept(inbox)).version == 0

    end = await run(of(answer), inbox)
    assert isinstance(end, Finished)
    assert [write.key for write in end.fsm] == [KEY]
    assert (await kept(inbox)).state == "Form:city"


async def test_the_next_update_sees_it_and_clears_it() -> None:
    inbox, seen = Inbox(), list[Any]()

    async def first(message: Message, state: FSMContext) -> None:
        await state.set_state(Form.city)
        await state.set_data({"a": [1, None]})

    async def second(message: Message, state: FSMContext, raw_state: str) -> None:
        seen.append((raw_state, await state.get_data()))
        await state.clear()

    router = Router()
    router.message.register(second, StateFilter(Form.city))
    router.message.register(first)
    runs = Runs(built(router, inbox), {BotId(42): BOT}, timeout=5)
    await again(runs, inbox)
    await again(runs, inbox)
    assert seen == [("Form:city", {"a": [1, None]})]
    assert await kept(inbox) == FsmValue()


async def test_what_a_handler_does_to_the_data_it_got_is_no_write() -> None:
    inbox = Inbox()

    async def answer(message: Message, state: FSMContext) -> None:
        await state.set_data({"list": []})
        (await state.get_data())["list"].append(1)
        assert await state.get_data() == {"list": []}

    await run(of(answer), inbox)


async def test_what_ends_as_it_was_writes_nothing() -> None:
    async def answer(message: Message, state: FSMContext) -> None:
        await state.set_state(Form.city)
        await state.clear()

    end = await run(of(answer), Inbox())
    assert end == Finished(end.token)


async def _fails() -> None:
    raise KeyError("city")


async def _again() -> None:
    raise RetryUpdate(after=1)


async def _waits() -> None:
    await asyncio.sleep(60)


@pytest.mark.parametrize(("then", "end"), [(_fails, Failed), (_again, Later), (_waits, Failed)])
async def test_what_a_run_set_is_dropped_when_it_has_not_finished(
    then: Callable[[], Awaitable[None]], end: type[End]
) -> None:
    inbox = Inbox()

    async def answer(message: Message, state: FSMContext) -> None:
        await state.set_state(Form.city)
        await then()

    assert isinstance(await run(of(answer), inbox, timeout=0.1), end)
    assert await kept(inbox) == FsmValue()


async def test_an_errors_observer_begins_with_the_state_as_it_was() -> None:
    inbox = Inbox()

    async def answer(message: Message, state: FSMContext) -> None:
        await state.set_state(Form.city)
        await state.update_data(half="step")
        raise KeyError("city")

    router = of(answer)

    @router.errors()
    async def sorry(event: ErrorEvent, state: FSMContext) -> None:
        assert await state.get_state() is None
        await state.update_data(sorry=True)

    await run(router, inbox)
    value = await kept(inbox)
    assert (value.state, value.data) == (None, b'{"sorry": true}')


async def test_states_of_many_runs_are_read_together() -> None:
    inbox = Inbox()

    async def answer(message: Message, state: FSMContext) -> None:
        await state.get_data()

    runs = Runs(built(of(answer), inbox), {BotId(42): BOT}, timeout=5)
    await asyncio.gather(*(runs.handle(lease(message(n, n, "x"))) for n in range(1, 31)))
    assert inbox.reads == [30]


async def test_while_the_database_is_away_the_update_waits() -> None:
    inbox = Inbox()
    inbox.away = True

    async def answer(message: Message, state: FSMContext) -> None:
        raise AssertionError

    end = await run(of(answer), inbox)
    assert isinstance(end, Later)
    assert len(inbox.reads) > 1


async def test_outside_of_a_run_it_is_written_at_once() -> None:
    inbox = Inbox()
    context = FSMContext(StateStorage(inbox), STORAGE_KEY)
    await context.set_state(Form.city)
    await context.update_data(a=1)
    value = await kept(inbox)
    assert (value.state, value.data) == ("Form:city", b'{"a": 1}')
    inbox.away = True
    with pytest.raises(StorageUnavailable):
        await FSMContext(StateStorage(inbox, patience=0.01), STORAGE_KEY).get_state()


async def test_a_task_that_a_handler_leaves_behind_writes_at_once() -> None:
    inbox, tasks = Inbox(), list[asyncio.Task[None]]()

    async def later(state: FSMContext) -> None:
        await asyncio.sleep(0.02)
        await state.update_data(late=True)

    async def answer(message: Message, state: FSMContext) -> None:
        await state.update_data(soon=True)
        tasks.append(asyncio.create_task(later(state)))

    await run(of(answer), inbox)
    await tasks[0]
    assert (await kept(inbox)).data == b'{"soon": true, "late": true}'


async def test_data_that_is_no_json_fails_its_update() -> None:
    async def answer(message: Message, state: FSMContext) -> None:
        await state.update_data(what=object())

    end = await run(of(answer), Inbox())
    assert isinstance(end, Failed)
    assert end.error.startswith("TypeError: Object of type object is not JSON serializable")


@pytest.mark.parametrize("name", ["a\0b", "\ud800"])
async def test_a_state_that_no_database_takes_fails_its_update_alone(name: str) -> None:
    async def answer(message: Message, state: FSMContext) -> None:
        await state.set_state(name)

    end = await run(of(answer), Inbox())
    assert isinstance(end, Failed)
    assert end.error.startswith("ValueError: the name of a state")


async def test_scenes_work() -> None:
    inbox, seen = Inbox(), list[Any]()

    class Quiz(Scene, state="quiz"):
        @on.message.enter()
        async def enter(self, message: Message) -> None:
            await self.wizard.update_data(step=1)

        @on.message()
        async def step(self, message: Message, state: FSMContext) -> None:
            seen.append(await state.get_data())
            await self.wizard.exit()

    router = Router()
    registry = SceneRegistry(router)
    registry.add(Quiz)
    router.message.register(Quiz.as_handler(), F.text == "/start")
    runs = Runs(built(router, inbox), {BotId(42): BOT}, timeout=5)
    for text in ("/start", "answer"):
        assert isinstance(await again(runs, inbox, text), Finished)
    assert seen == [{"step": 1}]
    assert (await kept(inbox)).state is None
