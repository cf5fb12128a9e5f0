"""compose.yaml keeps what the docs promise of it."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if "pillarbox:local" in service["image"]}


def seconds(duration: str) -> int:
    match = re.fullmatch(r"(\d+)s", duration)
    assert match, duration
    return int(match[1])


def test_ours_share_one_image_that_migrate_builds() -> None:
    assert set(OURS) == {"migrate", "ingest", "dispatcher", "sender", "admin", "simulator"}
    assert [name for name, service in OURS.items() if "build" in service] == ["migrate"]
    images = {name: service["image"] for name, service in OURS.items()}
    assert images.pop("dispatcher") == f"${{BOT_IMAGE:-{images['migrate']}}}"
    assert set(images.values()) == {"${PILLARBOX_IMAGE:-pillarbox:local}"}


@pytest.mark.parametrize("name", OURS)
def test_docker_waits_longer_than_the_service_does(name: str) -> None:
    service = OURS[name]
    assert float(service["environment"]["STOP_TIMEOUT"]) < seconds(service["stop_grace_period"])


@pytest.mark.parametrize("name", OURS)
def test_ours_run_without_rights(name: str) -> None:
    service = OURS[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["init"] is True


@pytest.mark.parametrize("name", SERVICES)
def test_what_runs_for_long_starts_again_and_is_watched(name: str) -> None:
    service = SERVICES[name]
    if name == "migrate":
        assert service["restart"] == "no"
        return
    assert service["restart"] == "unless-stopped"
    assert service["healthcheck"]["test"]


@pytest.mark.parametrize("name", ["ingest", "dispatcher", "admin"])
def test_who_uses_the_database_waits_for_the_migration(name: str) -> None:
    assert OURS[name]["depends_on"]["migrate"] == {"condition": "service_completed_successfully"}


def test_redis_keeps_what_it_confirmed() -> None:
    command = SERVICES["redis"]["command"]
    options = dict(zip(command[1::2], command[2::2], strict=True))
    assert options["--appendonly"] == "yes"
    assert options["--appendfsync"] == "always"
    assert options["--maxmemory-policy"] == "noeviction"
    assert "redis:/data" in SERVICES["redis"]["volumes"]


@pytest.mark.parametrize("name", SERVICES)
def test_what_is_published_is_published_on_this_machine_alone(name: str) -> None:
    for port in SERVICES[name].get("ports", []):
        assert re.fullmatch(r"\$\{[A-Z]+_PUBLISH:-127\.0\.0\.1:\d+\}:\d+", port), port


def test_database_and_redis_are_on_a_network_without_a_way_out() -> None:
    assert COMPOSE["networks"]["data"]["internal"] is True
    for name in ("postgres", "redis"):
        assert SERVICES[name]["networks"] == ["data"]
        assert "ports" not in SERVICES[name]


def test_every_image_has_a_version() -> None:
    dockerfile = (ROOT / "deploy/Dockerfile").read_text(encoding="utf-8")
    stages = set(re.findall(r"AS (\w+)$", dockerfile, re.M))
    bases = set(re.findall(r"^FROM (\S+)", dockerfile, re.M)) - stages
    images = {service["image"] for name, service in SERVICES.items() if name not in OURS}
    for image in bases | images:
        assert re.fullmatch(r"[a-z0-9./-]+:[0-9][a-z0-9.-]*", image), image
