"""Times in the file are whole microseconds since 1970: what is read is exactly what was written."""

from datetime import UTC, datetime, timedelta

SECOND = 1_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def micros(seconds: float) -> int:
    return round(seconds * SECOND)


def at(moment: int) -> datetime:
    return EPOCH + timedelta(microseconds=moment)


def of(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1)
