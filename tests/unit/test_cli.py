"""The command line tells in one line, and by its exit code."""

import pytest
from typer.testing import CliRunner

from pillarbox.cli import app

DISPATCHER = {
    "DATABASE_URL": "postgresql://x@127.0.0.1:1/x",
    "REDIS_URL": "redis://127.0.0.1:1",
    "BOT_TOKENS": "7:AAAAAAAAAAAAAAAA",
    "HANDLERS": "bot",
}


@pytest.mark.parametrize(
    ("arguments", "environment", "code", "says"),
    [
        (["migrate"], {}, 2, "DATABASE_URL is not set"),
        (["migrate"], {"DATABASE_URL": "mysql://x"}, 2, "DATABASE_URL: it must begin with postgresql://"),
        (["migrate"], {"DATABASE_URL": "postgresql://x@127.0.0.1:1/x"}, 1, "could not run"),
        (["check", "ingest"], {}, 2, "ingest: (pillarbox.E100) BOT_TOKENS is not set"),
        (
            ["check", "dispatcher"],
            DISPATCHER | {"PIN_KEYS": "true"},
            2,
            "dispatcher: (pillarbox.E100) PIN_KEYS: sealed updates",
        ),
        (["check", "nothing"], {}, 2, "no service nothing is installed"),
    ],
)
def test_one_line_and_a_code(arguments: list[str], environment: dict[str, str], code: int, says: str) -> None:
    result = CliRunner().invoke(app, arguments, env=environment)
    assert result.exit_code == code
    assert says in result.output
    assert "Traceback" not in result.output
