"""What a Bot API, or what stands between, might answer: status, headers and body."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

Shape = tuple[int, dict[str, str], bytes]


def _json(**members: object) -> bytes:
    return json.dumps({"ok": False, **members}).encode()


SHAPES: dict[str, Shape] = {
    "retry_after 1e300": (429, {}, b'{"ok":false,"error_code":429,"parameters":{"retry_after":1e300}}'),
    "retry_after 1e18": (429, {}, _json(error_code=429, parameters={"retry_after": 10**18})),
    "retry_after of 400 digits": (
        429,
        {},
        b'{"ok":false,"parameters":{"retry_after":' + b"9" * 400 + b"}}",
    ),
    "retry_after -5": (429, {}, _json(error_code=429, parameters={"retry_after": -5})),
    "retry_after text": (429, {}, _json(error_code=429, parameters={"retry_after": "5"})),
    "retry_after null": (429, {}, _json(parameters={"retry_after": None})),
    "retry_after true": (429, {}, _json(parameters={"retry_after": True})),
    "retry_after list": (429, {}, _json(parameters={"retry_after": [[]]})),
    "header of 400 digits": (429, {"Retry-After": "9" * 400}, b""),
    "header a date": (429, {"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}, b""),
    "a long wait in words": (429, {}, _json(description="Too Many Requests: retry after 999999999")),
    "parameters null": (400, {}, _json(parameters=None)),
    "parameters list": (400, {}, _json(parameters=[])),
    "parameters number": (400, {}, _json(parameters=5)),
    "description object": (400, {}, _json(description={"a": 1})),
    "description null": (400, {}, _json(description=None)),
    "description long": (400, {}, _json(description="x" * 100_000)),
    "description surrogate": (400, {}, b'{"ok":false,"error_code":400,"description":"\\ud800 \\u0000"}'),
    "code huge": (200, {}, b'{"ok":false,"error_code":' + b"9" * 400 + b"}"),
    "code negative": (200, {}, _json(error_code=-1)),
    "code text": (200, {}, _json(error_code="400")),
    "ok a number": (200, {}, b'{"ok":1}'),
    "ok missing": (200, {}, b"{}"),
    "ok false": (200, {}, _json()),
    "array": (200, {}, b"[]"),
    "text": (200, {}, b'"x"'),
    "null": (200, {}, b"null"),
    "number": (200, {}, b"1e400"),
    "nothing with 500": (500, {}, b""),
    "no UTF-8": (400, {}, b"\xff\xfe"),
    "a page": (502, {}, b"<html>"),
    "a page with 200": (200, {}, b"<html>"),
    "deep": (200, {}, b"[" * 100_000),
    "deep object": (400, {}, b'{"ok":false,"parameters":' + b'{"a":' * 50_000),
    "deep result": (400, {}, b'{"ok":0,"result":' + b"[" * 50_000 + b"]" * 50_000 + b"}"),
    "redirect": (302, {"Location": "http://127.0.0.1:1/"}, b""),
    "gzip that is none": (400, {"Content-Encoding": "gzip"}, b"no gzip"),
}


@asynccontextmanager
async def saying(shapes: list[Shape], then: bytes) -> AsyncIterator[tuple[str, list[str]]]:
    """A server that gives one shape after the other, then `then`; its address, and the methods asked."""
    left, asked = list(shapes), []

    async def answer(request: web.Request) -> web.Response:
        await request.read()
        asked.append(request.path.rpartition("/")[2])
        status, headers, body = left.pop(0) if left else (200, {}, then)
        return web.Response(status=status, headers=headers, body=body)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = site._server.sockets[0].getsockname()[1]  # type: ignore[union-attr]
    try:
        yield f"http://127.0.0.1:{port}", asked
    finally:
        await runner.cleanup()
