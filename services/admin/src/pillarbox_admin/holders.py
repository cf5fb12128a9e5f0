"""Who may do what: the holders of the tokens in ADMIN_TOKENS."""

import enum
import hashlib
import hmac
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from pydantic import SecretStr

NAME = re.compile(r"\A[A-Za-z0-9_.-]{1,64}\Z")
TOKEN = re.compile(r"\A[!-~]{16,512}\Z")


class Right(enum.StrEnum):
    READ = "read"
    """Lists, numbers and errors."""
    ACT = "act"
    """Retry and discard."""
    PAYLOAD = "payload"
    """What people wrote."""


@dataclass(frozen=True, slots=True)
class Holder:
    """A named token. Of the token itself only digests are kept."""

    name: str
    rights: frozenset[Right]
    digest: bytes = field(repr=False)
    session_key: bytes = field(repr=False)
    """Signs this holder's sessions: they end when the token changes."""


class Holders:
    def __init__(self, holders: Iterable[Holder]) -> None:
        self._holders = {holder.name: holder for holder in holders}

    def with_token(self, token: bytes) -> Holder | None:
        """Compares with every token, in the same time whichever it is."""
        digest = hashlib.sha256(token).digest()
        found: Holder | None = None
        for holder in self._holders.values():
            if hmac.compare_digest(holder.digest, digest):
                found = holder
        return found

    def named(self, name: str) -> Holder | None:
        return self._holders.get(name)


def parse(entry: str) -> Holder:
    """One `name:read+act+payload:token`; ValueError says what is wrong, without the token."""
    name, _, rest = entry.partition(":")
    rights, colon, token = rest.partition(":")
    if not colon or not NAME.match(name):
        raise ValueError("is not `name:rights:token` with a name of letters, digits, _ . -")
    if not TOKEN.match(token):
        raise ValueError("needs a token of 16 or more visible ASCII characters")
    return Holder(name, _rights(rights), hashlib.sha256(token.encode()).digest(), _session_key(token))


def check(entries: list[SecretStr]) -> list[SecretStr]:
    """For ADMIN_TOKENS: every entry can be read, and no name or token is there twice."""
    names: set[str] = set()
    digests: set[bytes] = set()
    for position, entry in enumerate(entries, 1):
        try:
            holder = parse(entry.get_secret_value())
        except ValueError as error:
            raise ValueError(f"entry {position} {error}") from None
        if holder.name in names or holder.digest in digests:
            raise ValueError(f"entry {position} repeats a name or a token")
        names.add(holder.name)
        digests.add(holder.digest)
    return entries


def _rights(words: str) -> frozenset[Right]:
    try:
        return frozenset(Right(word) for word in words.split("+"))
    except ValueError:
        raise ValueError("has rights other than read, act and payload, with + between") from None


def _session_key(token: str) -> bytes:
    return hmac.digest(token.encode(), b"pillarbox admin session", "sha256")
