"""`pillarbox check`: settings, database and Redis as the services find them, told as Django tells checks."""

import asyncio
from dataclasses import dataclass, field
from enum import StrEnum
from importlib.metadata import entry_points
from typing import Annotated

import typer

from pillarbox.errors import PillarboxError, SettingError
from pillarbox.settings import Advice, InboxSettings, RedisSettings, Settings, load, wrong

SERVICES = "pillarbox.settings"
"""The entry points by which an installed service names its settings."""

OTHER_SETTING = "E100"
NOT_REACHED = "E101"
"""Ids below 100 are those of django-aiogram, for the same thing."""


class Level(StrEnum):
    ERROR = "error"
    WARNING = "warning"


@dataclass(slots=True)
class Report:
    """What was found, by level, and where: several services may have the same."""

    found: dict[Level, dict[Advice, list[str]]] = field(
        default_factory=lambda: {Level.ERROR: {}, Level.WARNING: {}}
    )
    code: int = 0

    def add(self, level: Level, service: str, advice: Advice) -> None:
        self.found[level].setdefault(advice, []).append(service)

    def lines(self) -> list[str]:
        """As `manage.py check` prints them."""
        return [line for level, found in self.found.items() if found for line in _section(level, found)]


def _section(level: Level, found: dict[Advice, list[str]]) -> list[str]:
    lines = ["", f"{level.upper()}S:"]
    for advice, services in found.items():
        lines.append(f"{', '.join(services)}: (pillarbox.{advice.id}) {advice.text}")
        if advice.hint:
            lines.append(f"\tHINT: {advice.hint}")
    return lines


Services = Annotated[list[str] | None, typer.Argument(help="all that are installed, unless named")]
FailLevel = Annotated[Level, typer.Option(help="`warning`: exit code 3 where there are only warnings")]


def check(services: Services = None, fail_level: FailLevel = Level.ERROR) -> None:
    """Check settings, database and Redis with the same functions as the services at their start.

    Exit code 2 for a setting that is wrong, 1 for what is not reached now, 0 for warnings.
    """
    installed = {entry.name: entry for entry in entry_points(group=SERVICES)}
    report = Report()
    for name in services or sorted(installed):
        if name not in installed:
            known = ", ".join(sorted(installed))
            raise typer.BadParameter(f"no service {name} is installed; there are {known}")
        look(report, name, installed[name].load())
    for line in report.lines():
        typer.echo(line)
    only_warnings = not report.code and report.found[Level.WARNING]
    raise typer.Exit(3 if only_warnings and fail_level is Level.WARNING else report.code)


def look(report: Report, name: str, settings: type[Settings]) -> None:
    problems = wrong(settings)
    try:
        if not problems:
            find(report, name, load(settings))
    except SettingError as error:
        problems = [error]
    except PillarboxError as error:
        report.code = max(report.code, 1)
        hint = "is it running, and is the address right?"
        report.add(Level.ERROR, name, Advice(NOT_REACHED, str(error), hint))
        return
    for problem in problems:
        report.code = 2
        report.add(Level.ERROR, name, _told(problem))
    if not problems:
        typer.echo(f"{name}: ok")


def find(report: Report, name: str, settings: Settings) -> None:
    for advice in settings.advice():
        report.add(Level.WARNING, name, advice)
    for advice in asyncio.run(reached(settings)):
        report.add(Level.WARNING, name, advice)


def _told(error: SettingError) -> Advice:
    problem, fix = (error.problem, error.fix) if error.fix else _parted(error.problem)
    return Advice(error.id or OTHER_SETTING, problem, fix)


def _parted(line: str) -> tuple[str, str]:
    problem, _, fix = line.rpartition("; ")
    return (problem, fix) if problem else (fix, "")


async def reached(settings: Settings) -> list[Advice]:
    if isinstance(settings, InboxSettings):
        await opened(settings)
    if isinstance(settings, RedisSettings) and settings.redis_url.get_secret_value():
        return await answered(settings)
    return []


async def opened(settings: InboxSettings) -> None:
    from pillarbox.inbox.opening import shared_storage_of, storage_of

    storage = storage_of(settings) if settings.one_process else shared_storage_of(settings)
    try:
        await storage.open()
    finally:
        await storage.close()


async def answered(settings: RedisSettings) -> list[Advice]:
    from pillarbox.outbound.connection import connect
    from pillarbox.outbound.durability import risks

    client = connect(settings)
    try:
        return await risks(client)
    finally:
        await client.aclose()
