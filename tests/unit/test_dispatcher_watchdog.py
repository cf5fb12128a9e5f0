"""The thread that keeps leases, with a renewer that counts."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import structlog

from pillarbox.errors import LeasesLocked, StorageUnavailable
from pillarbox.ids import Token
from pillarbox_dispatcher.watchdog import Watchdog


class Renewals:
    """Every call that was made, and what the next ones answer."""

    def __init__(self) -> None:
        self.calls: list[tuple[float, list[Token]]] = []
        self.lost: frozenset[Token] = frozenset()
        self.error: Exception | None = None
        self.closed = False

    def renew(self, tokens: Sequence[Token]) -> frozenset[Token]:
        self.calls.append((time.monotonic(), list(tokens)))
        if self.error is not None:
            raise self.error
        return self.lost & set(tokens)

    def close(self) -> None:
        self.closed = True


@asynccontextmanager
async def watching(
    renewals: Renewals, *, lease: float, limit: float = 0, die: Callable[[], None] = lambda: None
) -> AsyncIterator[tuple[Watchdog, list[Token]]]:
    lost: list[Token] = []
    watchdog = Watchdog(lambda: renewals, lease=lease, limit=limit, die=die)
    task = asyncio.create_task(watchdog.run(lost.extend))
    await asyncio.sleep(0)
    yield watchdog, lost
    task.cancel()
    await asyncio.wait({task})


async def until_lost(lost: list[Token], count: int) -> None:
    async with asyncio.timeout(5):
        while len(lost) < count:  # noqa: ASYNC110 - it has no event
            await asyncio.sleep(0.01)


async def test_what_is_held_is_renewed_each_third_of_a_lease_and_what_is_dropped_is_not() -> None:
    renewals = Renewals()
    async with watching(renewals, lease=0.3) as (watchdog, lost):
        watchdog.hold(Token(1), time.monotonic())
        watchdog.hold(Token(2), time.monotonic())
        await asyncio.sleep(0.5)
        watchdog.drop(Token(1))
        await asyncio.sleep(0.5)
        assert lost == []
    held = [tokens for _, tokens in renewals.calls]
    assert held[0] == [1, 2]
    assert held[-1] == [2]
    assert 5 <= len(held) <= 11
    assert renewals.closed


async def test_a_blocked_loop_is_renewed_through_and_ends_past_the_limit() -> None:
    renewals, deaths = Renewals(), []
    async with watching(renewals, lease=0.6, limit=0.8, die=lambda: deaths.append(time.monotonic())) as (
        watchdog,
        _,
    ):
        watchdog.hold(Token(1), time.monotonic())
        began = time.monotonic()
        time.sleep(1.2)  # noqa: ASYNC251 - it is the case
        during = [at for at, _ in renewals.calls if at > began]
    assert len(during) >= 4
    assert deaths
    assert 0.7 < deaths[0] - began < 1.1


async def test_a_loop_that_is_only_busy_does_not_end_the_process() -> None:
    renewals, deaths = Renewals(), []
    async with watching(renewals, lease=0.3, limit=0.3, die=lambda: deaths.append(1)):
        for _ in range(8):
            time.sleep(0.1)  # noqa: ASYNC251 - it is the case
            await asyncio.sleep(0.03)
    assert deaths == []


async def test_another_dispatchers_leases_are_told_once() -> None:
    renewals = Renewals()
    renewals.lost = frozenset({Token(1)})
    async with watching(renewals, lease=0.15) as (watchdog, lost):
        watchdog.hold(Token(1), time.monotonic())
        watchdog.hold(Token(2), time.monotonic())
        await asyncio.sleep(0.4)
        assert lost == [1]


async def test_an_outage_is_sat_out_while_the_leases_last_and_told_before_they_end() -> None:
    renewals = Renewals()
    async with watching(renewals, lease=0.6) as (watchdog, lost):
        renewals.error = StorageUnavailable("switched off")
        watchdog.hold(Token(1), time.monotonic())
        await asyncio.sleep(0.35)
        renewals.error = None
        await asyncio.sleep(0.4)
        assert lost == []
        renewals.error = RuntimeError("a bug")
        began = time.monotonic()
        while not lost and time.monotonic() - began < 2:  # noqa: ASYNC110 - it has no event
            await asyncio.sleep(0.01)
        assert lost == [1]
        assert time.monotonic() - began < 0.6


async def test_a_lease_whose_run_has_ended_is_renewed_and_never_told_as_lost() -> None:
    """Its end may stand in the database already, before the loop knows."""
    renewals = Renewals()
    async with watching(renewals, lease=0.15) as (watchdog, lost):
        watchdog.hold(Token(1), time.monotonic())
        watchdog.over(Token(1))
        await asyncio.sleep(0.3)
        assert renewals.calls[-1][1] == [1]
        renewals.lost = frozenset({Token(1)})
        await asyncio.sleep(0.3)
        assert lost == []


async def test_leases_of_locked_lanes_are_no_ones_but_last_no_longer_than_they_do() -> None:
    renewals = Renewals()
    async with watching(renewals, lease=1.5) as (watchdog, lost):
        began = time.monotonic()
        for number in (1, 2, 3):
            watchdog.hold(Token(number), began)
        renewals.error = LeasesLocked(frozenset({Token(1)}), frozenset({Token(2)}))
        await until_lost(lost, 1)
        assert lost == [2]
        await until_lost(lost, 2)
        assert lost == [2, 1]
        assert time.monotonic() - began < 1.5


async def test_the_thread_names_the_service_in_its_lines() -> None:
    renewals = Renewals()
    renewals.error = StorageUnavailable("switched off")
    with structlog.contextvars.bound_contextvars(service="dispatcher"):
        seen: list[object] = []
        renewals.renew = lambda tokens: seen.append(structlog.contextvars.get_contextvars()) or frozenset()  # type: ignore[method-assign,func-returns-value]
        async with watching(renewals, lease=0.15) as (watchdog, _):
            watchdog.hold(Token(1), time.monotonic())
            await asyncio.sleep(0.2)
    assert seen[0] == {"service": "dispatcher"}
