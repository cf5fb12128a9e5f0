import socket
import stat
from pathlib import Path

import pytest

from pillarbox.errors import SettingError
from pillarbox_solo import environment
from pillarbox_solo.ports import free_port


def test_secrets_are_made_once_and_ports_are_kept(tmp_path: Path) -> None:
    first = environment.compose({}, {}, tmp_path)
    environment.write(tmp_path / "env", first)
    second = environment.compose(environment.read(tmp_path / "env"), {}, tmp_path)
    for name in ("BOT_TOKENS", "WEBHOOK_SECRET", "ADMIN_TOKENS", "POSTGRES_PORT", "VALKEY_PORT"):
        assert second[name] == first[name]
    assert environment.compose({}, {}, tmp_path)["BOT_TOKENS"] != first["BOT_TOKENS"]


def test_the_file_is_for_its_owner_alone_and_survives_odd_values(tmp_path: Path) -> None:
    file = tmp_path / "env"
    settings = {"SIMULATOR_DATA": "/a folder/with 'quotes'", "HANDLERS": "my_bot"}
    environment.write(file, settings)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert environment.read(file) == settings
    assert file.read_text().startswith("# Made anew at each start")


def test_every_port_is_another_one(tmp_path: Path) -> None:
    settings = environment.compose({"VALKEY_PORT": "8080", "POSTGRES_PORT": "8080"}, {}, tmp_path)
    assert len({settings[name] for name in environment.PORTS}) == len(environment.PORTS)


def test_a_taken_port_is_replaced_and_named() -> None:
    settings = {name: str(usual or free_port()) for name, usual in environment.PORTS.items()}
    assert environment.replaced(settings, {}) == {}
    other = settings | {"ADMIN_PORT": "15000"}
    assert environment.replaced(other, {}) == {"ADMIN_PORT": "15000"}
    assert environment.replaced(other, {"ADMIN_PORT": "15000"}) == {}


def test_a_port_that_was_asked_for_is_taken(tmp_path: Path) -> None:
    wanted = str(free_port())
    settings = environment.compose({"SIMULATOR_PORT": "8084"}, {"SIMULATOR_PORT": wanted}, tmp_path)
    assert settings["SIMULATOR_PORT"] == wanted
    assert settings["TELEGRAM_API_BASE"].endswith(f":{wanted}")


@pytest.mark.parametrize("port", ["http", "70000", "0", "-1"])
def test_what_is_no_port_is_refused(port: str, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="ADMIN_PORT: no port; set another, for example ADMIN_PORT=8083"):
        environment.compose({}, {"ADMIN_PORT": port}, tmp_path)


def test_a_port_that_was_asked_for_and_is_taken_is_refused(tmp_path: Path) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = str(listener.getsockname()[1])
        with pytest.raises(SettingError, match=f"INGEST_PORT: port {port} is taken"):
            environment.compose({}, {"INGEST_PORT": port}, tmp_path)


def test_a_bot_of_ones_own_is_given_by_its_module(tmp_path: Path) -> None:
    assert environment.compose({}, {"HANDLERS": "my_bot"}, tmp_path)["HANDLERS"] == "my_bot"
    kept = {"HANDLERS": "my_bot"}
    assert environment.compose(kept, {}, tmp_path)["HANDLERS"] == environment.HANDLERS


def test_the_persons_own_environment_changes_no_setting_of_ours(tmp_path: Path) -> None:
    given = {
        "DATABASE_URL": "elsewhere",
        "BOT_TOKENS_FILE": "/elsewhere",
        "DATABASE_DIRECT_URL": "elsewhere",
        "PYTHONPATH": "/mine",
        "CONCURRENCY": "2",
    }
    child = environment.for_child({"DATABASE_URL": "ours", "BOT_TOKENS": "ours"}, given, tmp_path)
    assert child["DATABASE_URL"] == "ours"
    assert "BOT_TOKENS_FILE" not in child
    assert "DATABASE_DIRECT_URL" not in child
    assert child["CONCURRENCY"] == "2"
    assert child["PYTHONPATH"] == f"{tmp_path}:/mine"
