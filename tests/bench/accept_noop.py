"""The yardstick of the accept bench: a FastAPI route that checks the secret and reads the body, no more."""

import asyncio
import hmac
import os
import signal

import uvloop
from fastapi import FastAPI, Request, Response

from pillarbox import process
from pillarbox.telemetry import serve

app = FastAPI()
SECRET = os.environ["WEBHOOK_SECRET"].encode()


@app.post("/webhook/{bot_id}")
async def webhook(bot_id: int, request: Request) -> Response:
    given = request.headers.get("x-telegram-bot-api-secret-token", "").encode()
    if not hmac.compare_digest(given, SECRET):
        return Response(status_code=401)
    await request.body()
    return Response(status_code=200)


@app.get("/readyz")
async def ready() -> Response:
    return Response(status_code=200)


async def main() -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    process.freeze()
    await serve(app, os.environ["INGEST_HOST"], int(os.environ["INGEST_PORT"]), stop)


if __name__ == "__main__":
    uvloop.run(main())
