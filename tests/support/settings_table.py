"""docs/settings.md is made of the services' own settings: `python -m tests.support.settings_table`."""

from pathlib import Path

from pillarbox.settings import Settings
from pillarbox_admin.settings import AdminSettings
from pillarbox_dispatcher.settings import DispatcherSettings
from pillarbox_ingest.settings import IngestSettings
from pillarbox_sender.settings import SenderSettings
from pillarbox_simulator.settings import SimulatorSettings

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"
SERVICES: dict[str, type[Settings]] = {
    "ingest": IngestSettings,
    "dispatcher": DispatcherSettings,
    "sender": SenderSettings,
    "admin": AdminSettings,
    "simulator": SimulatorSettings,
}
REQUIRED = "**required**"
HEAD = """# Settings

All of them come from the environment. `<NAME>_FILE` names a file that holds the value instead, for secrets;
both together are refused. An empty value is none at all. Times are seconds. A wrong setting stops the start:
exit code 2 and one line that names it, the problem and the fix; values are never printed.

This page is made of the services' own settings: `python -m tests.support.settings_table`.

| setting | default | what it is | read by |
|---|---|---|---|
"""


def table() -> str:
    rows: dict[str, tuple[str, str, list[str]]] = {}
    for service, settings in SERVICES.items():
        for name, default, meaning in rows_of(settings):
            row = rows.setdefault(name, (default, meaning, []))
            row[2].append(f"{service} (optional)" if row[0] == REQUIRED != default else service)
    lines = [
        f"| `{name}` | {default} | {meaning} | {_all_or(services)} |"
        for name, (default, meaning, services) in sorted(rows.items())
    ]
    return HEAD + "\n".join(lines) + "\n"


def rows_of(settings: type[Settings]) -> list[tuple[str, str, str]]:
    """Name, default and meaning of each setting."""
    return [
        (name.upper(), _default(field.is_required(), field.default), field.description or "")
        for name, field in settings.model_fields.items()
    ]


def _default(required: bool, value: object) -> str:
    if required:
        return REQUIRED
    if value is None or value == []:
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{value:g}`" if isinstance(value, float) and value < 1e6 else f"`{value}`"


def _all_or(services: list[str]) -> str:
    return "all" if len(services) == len(SERVICES) else ", ".join(services)


if __name__ == "__main__":
    PAGE.write_text(table(), encoding="utf-8")
