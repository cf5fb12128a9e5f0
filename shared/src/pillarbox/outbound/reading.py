"""Elements of the door, whoever wrote them: our own form, and those of old producers, which become ours."""

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from pillarbox.errors import MessageKept, MessageRefused
from pillarbox.ids import BotId
from pillarbox.outbound import methods
from pillarbox.outbound.envelope import Envelope, decode, encode, fields_of, of_fields
from pillarbox.outbound.files import MOST_BYTES, File
from pillarbox.outbound.producers.functions import FunctionCall, function_call, is_function_call
from pillarbox.outbound.producers.pickled import PICKLE, unpickled
from pillarbox.outbound.producers.plain import Plain, name_of
from pillarbox.outbound.producers.tags import untagged

BASE64 = 4 / 3
FILE_TAG = b'"__input_file__"'


@dataclass(frozen=True, slots=True)
class Read:
    """`element` is how the message waits in its lane; `contents` are the bytes of its files, by id."""

    envelope: Envelope
    element: bytes = field(repr=False)
    contents: Mapping[str, bytes] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Reader:
    """`listed`: only methods that are known, or named by `extra_methods`. `defaults` are the bots' as aiogram
    names them, for the messages of old producers, which leave them to the sender; under a bot's id, its own.
    """

    max_message: int = 1 << 20
    listed: bool = False
    extra_methods: frozenset[str] = frozenset()
    allow_pickle: bool = False
    defaults: Mapping[str, Any] = field(default_factory=dict)
    clock: Callable[[], float] = time.time

    def read(self, element: bytes, mark: str = "", bot: BotId | None = None) -> Read:
        """Raises MessageRefused and MessageKept, as `decode`. `mark` tells files of equal messages apart;
        `bot` is for an element that names none.
        """
        if len(element) > self._most(element):
            raise self._too_big()
        read = self._read(element, mark, bot)
        if len(read.element) > self.max_message:
            raise self._too_big()
        if self.listed:
            self._known(read.envelope.method)
        return read

    def _most(self, element: bytes) -> int:
        """The bytes of files do not count in a form that writes them into the message."""
        files = PICKLE.match(element) or FILE_TAG in element
        return self.max_message + (int(MOST_BYTES * BASE64) if files else 0)

    def _too_big(self) -> MessageRefused:
        return MessageRefused("too_big", f"more than {self.max_message} bytes")

    def _known(self, method: str) -> None:
        if method.lower() not in methods.names() and method.lower() not in self.extra_methods:
            raise MessageRefused(
                "method_unknown", "the Bot API has none of this name; EXTRA_METHODS adds a newer one"
            )

    def _read(self, element: bytes, mark: str, bot: BotId | None) -> Read:
        if PICKLE.match(element):
            return self._ours(self._pickled(element), element, mark, bot)
        fields = fields_of(element)
        if not is_function_call(fields):
            return Read(of_fields(fields, element), element)
        call = function_call(fields)
        return self._ours(replace(call, kwargs=_untagged(call.kwargs)), element, mark, bot)

    def _pickled(self, element: bytes) -> FunctionCall:
        if not self.allow_pickle:
            raise MessageKept("pickle")
        fields = unpickled(element)
        if not isinstance(fields, dict):
            raise MessageRefused("pickle", "it is no pickle of a message")
        return function_call(fields)

    def _defaults(self, bot: BotId | None) -> Mapping[str, Any]:
        own: Mapping[str, Any] | None = self.defaults.get(str(bot))
        return self.defaults if own is None else own

    def _ours(self, call: FunctionCall, element: bytes, mark: str, bot: BotId | None) -> Read:
        """A call of aiogram's as a message of our form."""
        method = methods.of_function(call.function)
        plain = Plain(self._defaults(call.bot or bot), self.clock(), self.max_message)
        params = plain.params(method, call.kwargs)
        origin = hashlib.blake2b(mark.encode() + b"\n" + element, digest_size=16).hexdigest()
        uploads = {f"{origin}-{number}": upload for number, upload in enumerate(plain.uploads, 1)}
        files = {
            name_of(number): File(identity, upload.filename, once=True)
            for number, (identity, upload) in enumerate(uploads.items(), 1)
        }
        ours = _encoded(Envelope(method, params, call.bot, trace=call.trace, files=files))
        return Read(decode(ours), ours, {identity: upload.content for identity, upload in uploads.items()})


def _untagged(kwargs: dict[str, Any]) -> dict[str, Any]:
    try:
        return {name: untagged(value) for name, value in kwargs.items()}
    except RecursionError:
        raise MessageRefused("json") from None


def _encoded(envelope: Envelope) -> bytes:
    """What a pickle holds may have no form in JSON: a number of 100 digits, half of a surrogate pair."""
    try:
        return encode(envelope)
    except (msgspec.MsgspecError, ValueError, OverflowError, TypeError):
        raise MessageRefused("params", "they have no form in JSON") from None
