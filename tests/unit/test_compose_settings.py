"""Every setting that a service reads can be set for its container: compose.yaml passes each on by name."""

from pathlib import Path

import pytest
import yaml

from pillarbox.settings import Settings
from pillarbox_admin.settings import AdminSettings
from pillarbox_dispatcher.settings import DispatcherSettings
from pillarbox_ingest.settings import IngestSettings
from pillarbox_sender.settings import SenderSettings
from pillarbox_simulator.settings import SimulatorSettings

COMPOSE = yaml.safe_load((Path(__file__).parents[2] / "compose.yaml").read_text(encoding="utf-8"))
SERVICES: list[tuple[str, type[Settings]]] = [
    ("ingest", IngestSettings),
    ("dispatcher", DispatcherSettings),
    ("sender", SenderSettings),
    ("admin", AdminSettings),
    ("simulator", SimulatorSettings),
]
FIXED = ("_host", "_port")  # what is published is a matter of `ports`


@pytest.mark.parametrize(("service", "settings"), SERVICES)
def test_every_setting_is_passed_on(service: str, settings: type[Settings]) -> None:
    read = {name.upper() for name in settings.model_fields if not name.endswith(FIXED)}
    assert read - {"HOSTNAME"} - set(COMPOSE["services"][service]["environment"]) == set()
