"""One process for each service: started, started again after a crash, and stopped in order."""

import asyncio
import signal
import time
from asyncio.subprocess import PIPE, STDOUT, Process, create_subprocess_exec
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pillarbox.backoff import Backoff
from pillarbox_solo import processes
from pillarbox_solo.tracebacks import Tracebacks

Say = Callable[[str, str], None]
"""The name of a service, and a line that it wrote or that is about it."""

WRONG_SETTING = 2
LONGEST_LINE = 1 << 20
LONG_ENOUGH = 30.0  # seconds of life after which a crash counts as the first one again


@dataclass(frozen=True)
class Service:
    """`mark` is the argument that tells its process from a stranger with the same pid.

    One with `last` is stopped when the others have ended: they still need it for what they finish.
    """

    name: str
    command: Sequence[str]
    mark: str
    environment: Mapping[str, str] = field(repr=False)
    last: bool = False


class Supervisor:
    """`folder` keeps the pids, by which the next start finds what a killed supervisor left behind."""

    def __init__(
        self,
        folder: Path,
        say: Say,
        stop_timeout: float,
        backoff: Callable[[], Backoff] = lambda: Backoff(first=0.5, most=10.0),
    ) -> None:
        self._folder = folder
        self._say = say
        self._stop_timeout = stop_timeout
        self._backoff = backoff
        self._alive: dict[str, Process] = {}
        self._wrong: str | None = None
        self._tracebacks: defaultdict[str, Tracebacks] = defaultdict(Tracebacks)
        self.crashes: Counter[str] = Counter()
        self.ends: dict[str, str] = {}
        """How each service that crashed has ended last, with the last line that it wrote."""

    def pid(self, name: str) -> int | None:
        """Of the service's process, while there is one."""
        process = self._alive.get(name)
        return process.pid if process else None

    def end_orphans(self, services: Sequence[Service]) -> None:
        """For whoever holds the folder's lock: nobody else can have started these."""
        for service in services:
            pid = processes.read_pid(self._pid_file(service))
            if pid is not None and processes.runs(pid, service.mark):
                processes.end(pid, service.mark, signal.SIGTERM, 5.0)
            self._pid_file(service).unlink(missing_ok=True)

    async def run(self, services: Sequence[Service], stop: asyncio.Event) -> str | None:
        """Until `stop` is set and every process has ended.

        A service that ends with 2 says that a setting is wrong: that sets `stop`, and is the answer.
        """
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        others_ended = asyncio.Event()
        try:
            async with asyncio.TaskGroup() as group:
                others = [group.create_task(self._keep(s, stop, stop)) for s in services if not s.last]
                for service in services:
                    if service.last:
                        group.create_task(self._keep(service, others_ended, stop))
                await asyncio.gather(*others)
                await stop.wait()
                others_ended.set()
        finally:
            for process in self._alive.values():
                process.kill()
        return self._wrong

    async def _keep(self, service: Service, stop: asyncio.Event, stop_all: asyncio.Event) -> None:
        backoff = self._backoff()
        while not stop.is_set():
            began = time.monotonic()
            code, last_line = await self._live(service, stop)
            if stop.is_set():
                return
            if code == WRONG_SETTING:
                self._wrong = last_line or f"{service.name} ended with {code} and said nothing"
                stop_all.set()
                return
            self.crashes[service.name] += 1
            self.ends[service.name] = f"{_end(code)}: {last_line}" if last_line else _end(code)
            if time.monotonic() - began > LONG_ENOUGH:
                backoff.reset()
            delay = backoff.delay()
            self._say(service.name, f"{_end(code)}; it is started again in {delay:.1f} s")
            await _wait(stop, delay)

    async def _live(self, service: Service, stop: asyncio.Event) -> tuple[int, str]:
        """One life of its process: its exit code, and the last line that it wrote."""
        process = await create_subprocess_exec(
            *service.command,
            stdout=PIPE,
            stderr=STDOUT,
            env=dict(service.environment),
            limit=LONGEST_LINE,
            start_new_session=True,  # Ctrl+C in the terminal is for us, who stop things in order
        )
        self._alive[service.name] = process
        self._pid_file(service).write_text(f"{process.pid}\n", encoding="utf-8")
        async with asyncio.TaskGroup() as group:
            stopping = group.create_task(self._stop(service, process, stop))
            pump = group.create_task(self._pump(service, process))
            code = await process.wait()
            stopping.cancel()
        del self._alive[service.name]
        self._pid_file(service).unlink(missing_ok=True)
        return code, pump.result()

    async def _stop(self, service: Service, process: Process, stop: asyncio.Event) -> None:
        await stop.wait()
        process.terminate()
        await asyncio.sleep(self._stop_timeout)
        self._say(service.name, f"did not stop within {self._stop_timeout:.0f} s and is killed")
        process.kill()

    async def _pump(self, service: Service, process: Process) -> str:
        last, tracebacks = "", self._tracebacks[service.name]
        while process.stdout is not None:
            try:
                raw = await process.stdout.readline()
            except ValueError:  # longer than LONGEST_LINE; asyncio has dropped it
                continue
            if not raw:
                break
            if line := raw.decode("utf-8", "replace").rstrip():
                last = line
                self._say_all(service, tracebacks.feed(line))
        self._say_all(service, tracebacks.end())
        return last

    def _say_all(self, service: Service, lines: Sequence[str]) -> None:
        for line in lines:
            self._say(service.name, line)

    def _pid_file(self, service: Service) -> Path:
        return self._folder / f"{service.name}.pid"


def _end(code: int) -> str:
    return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"


async def _wait(stop: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await stop.wait()
    except TimeoutError:
        pass
