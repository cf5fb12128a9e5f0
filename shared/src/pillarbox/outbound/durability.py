"""Whether Redis keeps what it confirmed: anything less is advice that names the risk."""

from redis.asyncio import Redis
from redis.exceptions import ResponseError

from pillarbox.errors import SettingError
from pillarbox.outbound.connection import passing
from pillarbox.settings import Advice

WANTED = {
    "appendonly": ("W101", "yes", "a restart of Redis loses every message that waits"),
    "appendfsync": ("W102", "always", "a crash of its machine loses the messages of the last second"),
    "maxmemory-policy": ("W103", "noeviction", "a full Redis throws messages away"),
}
UNTOLD = Advice(
    "W104",
    "Redis does not tell its configuration, so nobody knows whether it keeps what it confirms",
    "make sure of appendonly yes, appendfsync always and maxmemory-policy noeviction",
)
OLDEST = (7, 0)


async def risks(redis: "Redis") -> list[Advice]:
    """Raises QueueUnavailable, and SettingError for a Redis that cannot run our scripts."""
    with passing():
        version = str((await redis.info("server"))["redis_version"])
        if tuple(int(part) for part in version.split(".")[:2]) < OLDEST:
            raise SettingError(f"REDIS_URL: this is Redis {version}", fix="use Redis 7.0 or newer, or Valkey")
        try:
            found = {name: (await redis.config_get(name)).get(name) for name in WANTED}
        except ResponseError:
            return [UNTOLD]
    return [
        Advice(id, f"Redis has {name} {found[name]}, not {wanted}: {risk}", f"give Redis {name} {wanted}")
        for name, (id, wanted, risk) in WANTED.items()
        if found[name] is not None and found[name] != wanted
    ]
