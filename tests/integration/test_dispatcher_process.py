"""Dispatchers as processes that are killed, paused, blocked and stopped, on a real inbox."""

import asyncio
import signal
from pathlib import Path

import psycopg
import pytest

from tests.support.dispatching import Process, accept, events, inbox, incoming, processes, until

pytestmark = pytest.mark.timeout(180)


def scalar(url: str, query: str) -> int:
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute(query).fetchone()
    assert row is not None
    return int(row[0])


def pending(url: str) -> int:
    return scalar(url, "SELECT count(*) FROM updates")


async def test_a_blocked_loop_keeps_its_leases_and_says_where_it_blocks(
    tmp_path: Path, postgres_url: str, valkey_url: str
) -> None:
    with processes() as started:
        started += [Process(tmp_path, postgres_url, valkey_url, LEASE=1) for _ in range(2)]
        await asyncio.gather(*(process.ready() for process in started))
        async with inbox(postgres_url) as storage:
            await accept(storage, [incoming(1, 5, "block 3"), incoming(2, 5, "after")])
        await until(lambda: pending(postgres_url) == 0)
        logs = [process.log.read_text() for process in started]
    assert [(event.what, event.text) for event in events(tmp_path)] == [
        ("start", "block_3"),
        ("end", "block_3"),
        ("start", "after"),
        ("end", "after"),
    ]
    assert any("the event loop is blocked" in log and "bot.py:" in log and " run" in log for log in logs)


async def test_past_the_limit_a_blocked_process_ends_and_another_goes_on(
    tmp_path: Path, postgres_url: str, valkey_url: str
) -> None:
    with processes() as started:
        first = Process(tmp_path, postgres_url, valkey_url, LEASE=1, HANDLER_TIMEOUT=2, MAX_HANDLER_RUNS=1)
        started.append(first)
        await first.ready()
        async with inbox(postgres_url) as storage:
            await accept(storage, [incoming(1, 5, "block 60"), incoming(2, 5, "after")])
        assert await first.exit_code() == 3
        assert "ending the process" in first.log.read_text()
        second = Process(tmp_path, postgres_url, valkey_url, LEASE=1, MAX_HANDLER_RUNS=1)
        started.append(second)
        await until(lambda: pending(postgres_url) == 0)
    assert [event.text for event in events(tmp_path, "start")] == ["block_60", "after"]
    assert scalar(postgres_url, "SELECT count(*) FROM failed WHERE update_id = 1") == 1


async def test_killed_in_the_middle_the_update_runs_on_another(
    tmp_path: Path, postgres_url: str, valkey_url: str
) -> None:
    with processes() as started:
        first, second = (Process(tmp_path, postgres_url, valkey_url, LEASE=1) for _ in range(2))
        started += [first, second]
        await first.ready()
        await second.ready()
        async with inbox(postgres_url) as storage:
            await accept(storage, [incoming(1, 5, "sleep 1.5"), incoming(2, 5, "after")])
        await until(lambda: bool(events(tmp_path, "start")))
        holder = events(tmp_path)[0].pid
        (first if first.pid == holder else second).signal(signal.SIGKILL)
        await until(lambda: pending(postgres_url) == 0)
    noted = events(tmp_path)
    assert [(event.what, event.text) for event in noted[1:]] == [
        ("start", "sleep_1.5"),
        ("end", "sleep_1.5"),
        ("start", "after"),
        ("end", "after"),
    ]
    assert {event.pid for event in noted[1:]} == {first.pid, second.pid} - {holder}
    assert scalar(postgres_url, "SELECT count(*) FROM failed") == 0


async def test_paused_for_two_leases_its_late_finish_changes_nothing(
    tmp_path: Path, postgres_url: str, valkey_url: str
) -> None:
    with processes() as started:
        first = Process(tmp_path, postgres_url, valkey_url, LEASE=1)
        started.append(first)
        await first.ready()
        async with inbox(postgres_url) as storage:
            await accept(storage, [incoming(1, 5, "sleep 0.5"), incoming(2, 5, "sleep 4")])
        await until(lambda: bool(events(tmp_path, "start")))
        first.signal(signal.SIGSTOP)
        second = Process(tmp_path, postgres_url, valkey_url, LEASE=1)
        started.append(second)
        await until(lambda: len(events(tmp_path, "start")) == 3)
        first.signal(signal.SIGCONT)
        await until(lambda: pending(postgres_url) == 0)
        # Each update's answer once: the late finish of the first has queued nothing.
        await until(lambda: scalar(postgres_url, "SELECT count(*) FROM outbox") == 0)
    ends = [(event.text, event.pid) for event in events(tmp_path, "end") if event.pid == second.pid]
    assert ends == [("sleep_0.5", second.pid), ("sleep_4", second.pid)]


async def test_clean_stops_during_a_slow_handler_count_no_run(
    tmp_path: Path, postgres_url: str, valkey_url: str
) -> None:
    async with inbox(postgres_url) as storage:
        await accept(storage, [incoming(1, 5, "sleep 60")])
    with processes() as started:
        for stops in range(1, 7):
            process = Process(tmp_path, postgres_url, valkey_url, STOP_TIMEOUT=0.2, MAX_HANDLER_RUNS=2)
            started.append(process)
            await until(lambda n=stops: len(events(tmp_path, "start")) == n, 30)  # type: ignore[misc]
            process.signal(signal.SIGTERM)
            assert await process.exit_code() == 0, process.log.read_text()
            assert scalar(postgres_url, "SELECT coalesce(max(runs), 0) FROM lanes") == 0
            assert scalar(postgres_url, "SELECT count(*) FROM lanes WHERE token IS NOT NULL") == 0
    assert pending(postgres_url) == 1


async def test_killed_in_the_middle_of_a_stop_the_run_has_not_counted(
    tmp_path: Path, postgres_url: str, valkey_url: str
) -> None:
    async with inbox(postgres_url) as storage:
        await accept(storage, [incoming(1, 5, "sleep 60")])
    with processes() as started:
        for stops in range(1, 4):
            process = Process(tmp_path, postgres_url, valkey_url, LEASE=1, MAX_HANDLER_RUNS=2)
            started.append(process)
            await until(lambda n=stops: len(events(tmp_path, "start")) == n, 30)  # type: ignore[misc]
            process.signal(signal.SIGTERM)
            await until(lambda: scalar(postgres_url, "SELECT runs FROM lanes") == 0)
            assert process.alive
            assert scalar(postgres_url, "SELECT count(*) FROM lanes WHERE token IS NOT NULL") == 1
            process.signal(signal.SIGKILL)
    assert scalar(postgres_url, "SELECT count(*) FROM failed") == 0


async def test_a_handler_that_cannot_be_cancelled_does_not_keep_its_process(
    tmp_path: Path, postgres_url: str, valkey_url: str
) -> None:
    async with inbox(postgres_url) as storage:
        await accept(storage, [incoming(1, 5, "stubborn"), incoming(2, 6, "sleep 0")])
    with processes() as started:
        process = Process(tmp_path, postgres_url, valkey_url, LEASE=1, STOP_TIMEOUT=0.2)
        started.append(process)
        await until(lambda: len(events(tmp_path, "start")) == 2 and pending(postgres_url) == 1)
        process.signal(signal.SIGTERM)
        assert await process.exit_code() == 3
        assert "handlers in it that do not end" in process.log.read_text()
    assert scalar(postgres_url, "SELECT runs FROM lanes") == 0


async def test_a_clean_stop_lets_the_handler_end_and_relays_its_answer(
    tmp_path: Path, postgres_url: str, valkey_url: str
) -> None:
    with processes() as started:
        process = Process(tmp_path, postgres_url, valkey_url)
        started.append(process)
        await process.ready()
        async with inbox(postgres_url) as storage:
            await accept(storage, [incoming(1, 5, "sleep 1"), incoming(2, 5, "after")])
        await until(lambda: bool(events(tmp_path, "start")))
        process.signal(signal.SIGTERM)
        assert await process.exit_code() == 0
    assert [event.what for event in events(tmp_path)] == ["start", "end"]
    assert pending(postgres_url) == 1
    assert scalar(postgres_url, "SELECT count(*) FROM outbox") == 0


async def test_updates_that_kill_their_process_take_no_others_to_the_failed_list(
    tmp_path: Path, postgres_url: str, valkey_url: str
) -> None:
    async with inbox(postgres_url) as storage:
        updates = [incoming(n, n, "sleep 0.05") for n in range(1, 31)]
        await accept(storage, [incoming(100, 100, "die"), *updates, incoming(101, 101, "die")])
    with processes() as started:
        while pending(postgres_url):
            process = Process(tmp_path, postgres_url, valkey_url, LEASE=0.5, MAX_HANDLER_RUNS=3)
            started.append(process)
            await until(lambda p=process: not p.alive or pending(postgres_url) == 0, 30)  # type: ignore[misc]
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        failed = connection.execute("SELECT update_id FROM failed ORDER BY 1").fetchall()
    assert [update_id for (update_id,) in failed] == [100, 101]


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ({"HANDLERS": "nowhere.bot"}, "HANDLERS: nowhere.bot cannot be imported (ModuleNotFoundError:"),
        ({"HANDLERS": ""}, "HANDLERS is not set"),
        ({"ANSWERS": "queue"}, "ANSWERS: "),
        (
            {"RETRY_ON": "Nonsense"},
            "RETRY_ON: Nonsense is no type of error that can be imported; for example",
        ),
        ({"CONCURRENCY": "0"}, "CONCURRENCY: "),
    ],
)
async def test_a_wrong_setting_is_one_line_and_exit_code_2(
    tmp_path: Path, postgres_url: str, valkey_url: str, more: dict[str, str], line: str
) -> None:
    with processes() as started:
        process = Process(tmp_path, postgres_url, valkey_url, **more)
        started.append(process)
        assert await process.exit_code() == 2
    (said,) = process.log.read_text().splitlines()
    assert said.startswith(f"dispatcher: {line}")
