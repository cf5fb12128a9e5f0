"""Whether Redis keeps what it confirmed, asked at start: anything less is a warning that names the risk."""

from redis.asyncio import Redis
from redis.exceptions import ResponseError

from pillarbox.errors import SettingError
from pillarbox.outbound.connection import passing

WANTED = {
    "appendonly": ("yes", "a restart of Redis loses every message that waits"),
    "appendfsync": ("always", "a crash of its machine loses the messages of the last second"),
    "maxmemory-policy": ("noeviction", "a full Redis throws messages away"),
}
OLDEST = (7, 0)


async def risks(redis: "Redis") -> list[str]:
    """One line a risk. Raises QueueUnavailable, and SettingError for a Redis that cannot run our scripts."""
    with passing():
        version = str((await redis.info("server"))["redis_version"])
        if tuple(int(part) for part in version.split(".")[:2]) < OLDEST:
            raise SettingError(f"REDIS_URL: this is Redis {version}; use Redis 7.0 or newer, or Valkey")
        try:
            found = {name: (await redis.config_get(name)).get(name) for name in WANTED}
        except ResponseError:
            return ["Redis does not tell its configuration: make sure of appendfsync always and noeviction"]
    return [
        f"Redis has {name} {found[name]}, not {wanted}: {risk}"
        for name, (wanted, risk) in WANTED.items()
        if found[name] is not None and found[name] != wanted
    ]
