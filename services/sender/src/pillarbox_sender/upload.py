"""A call with files as a form: how the Bot API takes bytes ("Sending files")."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

import aiohttp
import msgspec

from pillarbox.outbound.files import File

AT_ONCE = 65536


def form(
    params: Mapping[str, Any], files: Mapping[str, File], contents: Mapping[str, bytes]
) -> aiohttp.FormData:
    """`attach://<name>` in the params names one of the files."""
    data = aiohttp.FormData(quote_fields=False)
    for name, value in params.items():
        if value is not None:
            data.add_field(name, value if isinstance(value, str) else msgspec.json.encode(value).decode())
    for name, content in contents.items():
        data.add_field(name, _chunks(content), filename=files[name].filename or name)
    return data


async def _chunks(content: bytes) -> AsyncIterator[bytes]:
    for begin in range(0, len(content), AT_ONCE):
        yield content[begin : begin + AT_ONCE]
