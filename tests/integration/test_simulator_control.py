import asyncio
import json
from typing import Any

import aiohttp
import pytest

from pillarbox_simulator import Running, running
from tests.support.simulator import BOT_ID, TOKEN
from tests.support.simulator_client import SimulatorClient


@pytest.fixture
def ctl(simulator: Running, http: aiohttp.ClientSession) -> Any:
    async def ctl(verb: str, path: str, body: Any = None, status: int = 200) -> Any:
        data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        async with http.request(verb, f"{simulator.url}/_ctl/{path}", data=data) as answer:
            assert answer.status == status, await answer.text()
            return await answer.json()

    return ctl


@pytest.fixture
def send(simulator: Running, http: aiohttp.ClientSession) -> Any:
    async def send(text: str, chat_id: int = 42) -> int:
        body = {"chat_id": chat_id, "text": text}
        async with http.post(f"{simulator.url}/bot{TOKEN}/sendMessage", json=body) as answer:
            return answer.status

    return send


async def test_a_reset_after_the_effect_hides_a_message_that_was_sent(
    control: SimulatorClient, ctl: Any, send: Any
) -> None:
    await control.faults([{"kind": "reset_after", "nth": 1}, {"kind": "reset_before", "nth": 1}])
    for text in ("#42:1", "#42:2"):
        with pytest.raises(aiohttp.ClientError):
            await send(text)
    assert await send("#42:3") == 200
    assert [(e["status"], e["effect"]) for e in await control.ledger()] == [
        (0, True),
        (0, False),
        (200, True),
    ]
    assert (await ctl("GET", "check?expected=42:3"))["lost"] == ["#42:2"]


async def test_a_slow_call_takes_effect_before_it_is_answered(ctl: Any, send: Any) -> None:
    await ctl("PUT", "faults", [{"kind": "slow", "method": "sendMessage", "seconds": 0.5}])
    sending = asyncio.create_task(send("hi"))
    assert (await ctl("GET", "wait?method=sendMessage&effect=true&timeout=10"))["met"]
    assert not sending.done()
    assert await sending == 200


async def test_a_hang_ends_when_the_caller_gives_up_or_its_time_is_over(
    simulator: Running, http: aiohttp.ClientSession, control: SimulatorClient, send: Any
) -> None:
    await control.faults([{"kind": "hang", "nth": 1}, {"kind": "hang_after", "seconds": 0.2, "nth": 1}])
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(send("x"), 0.3)
    with pytest.raises(aiohttp.ClientError):
        await asyncio.wait_for(send("y"), 5)
    assert [(e["status"], e["effect"]) for e in await control.ledger()] == [(0, False), (0, True)]


async def test_a_hang_ends_when_its_fault_is_taken_away(control: SimulatorClient, send: Any) -> None:
    hang = {"kind": "hang", "id": "h"}
    await control.faults([hang])
    hanging = asyncio.create_task(send("x"))
    await asyncio.sleep(0.2)
    await control.faults([{"kind": "500", "method": "getMe"}, hang])
    await asyncio.sleep(0.2)
    assert not hanging.done()
    await control.faults([])
    with pytest.raises(aiohttp.ClientError):
        await asyncio.wait_for(hanging, 5)


async def test_a_hang_does_not_hold_the_stop(http: aiohttp.ClientSession) -> None:
    async with asyncio.timeout(10):
        async with running() as simulator:
            await SimulatorClient(simulator.url, http).faults([{"kind": "hang"}])
            url = f"{simulator.url}/bot{TOKEN}/sendMessage?chat_id=1&text=x"
            hanging = asyncio.create_task(http.get(url))
            await asyncio.sleep(0.2)
        with pytest.raises(aiohttp.ClientError):
            await hanging


async def test_a_429_carries_the_header(
    simulator: Running, http: aiohttp.ClientSession, control: SimulatorClient, send: Any, ctl: Any
) -> None:
    await control.faults([{"kind": "429", "retry_after": 3, "chat_id": 42, "id": "flood"}])
    async with http.get(f"{simulator.url}/bot{TOKEN}/sendMessage?chat_id=42&text=x") as answer:
        assert (answer.status, answer.headers["Retry-After"]) == (429, "3")
        assert (await answer.json())["parameters"] == {"retry_after": 3}
    assert await send("other chat", 43) == 200
    assert (await ctl("GET", "faults"))["faults"][0]["hits"] == 1
    await ctl("DELETE", "faults?id=flood")
    await asyncio.sleep(0.3)
    assert await send("too early") == 200
    (ignored,) = (await ctl("POST", "check", {}))["retry_after_ignored"]
    assert ignored["chat_id"] == 42


async def test_limits_are_enforced_when_asked(ctl: Any, send: Any) -> None:
    assert [await send("x") for _ in range(6)] == [200] * 6
    await ctl("PUT", "limits", {"mode": "enforced", "chat_burst": 2, "bulk_per_second": 5})
    assert [await send("x") for _ in range(3)] == [200, 200, 429]
    assert [await send("x", chat) for chat in range(1, 5)] == [200, 200, 200, 429]
    assert {b["limit"] for b in (await ctl("POST", "check", {}))["limits_broken"]} == {"chat"}


async def test_wait_sees_what_comes_and_says_when_nothing_did(ctl: Any, send: Any) -> None:
    waiting = asyncio.create_task(ctl("GET", "wait?method=sendMessage&text=hello&count=2&timeout=5"))
    for text in ("hello 1", "else", "hello 2"):
        await send(text)
    answer = await waiting
    assert [entry["params"]["text"] for entry in answer["calls"]] == ["hello 1", "hello 2"]
    assert (await ctl("GET", "wait?method=getMe&timeout=0.05", status=408))["met"] is False


async def test_people_write_and_press(ctl: Any, simulator: Running, http: aiohttp.ClientSession) -> None:
    written = await ctl(
        "POST", "messages", {"bot_id": BOT_ID, "chat_id": -5, "user_id": 7, "text": "/go", "name": "Ann"}
    )
    pressed = await ctl(
        "POST",
        "callbacks",
        {"bot_id": BOT_ID, "chat_id": -5, "user_id": 7, "message_id": written["message_id"], "data": "d"},
    )
    async with http.get(f"{simulator.url}/bot{TOKEN}/getUpdates") as answer:
        message, press = (await answer.json())["result"]
    assert message["message"]["from"] == {
        "id": 7,
        "is_bot": False,
        "first_name": "Ann",
        "language_code": "en",
    }
    assert message["message"]["entities"] == [{"type": "bot_command", "offset": 0, "length": 3}]
    assert press["callback_query"]["data"] == "d"
    assert press["callback_query"]["id"] == pressed["callback_query_id"]
    query = {"callback_query_id": pressed["callback_query_id"]}
    for status in (200, 400):
        async with http.post(f"{simulator.url}/bot{TOKEN}/answerCallbackQuery", json=query) as answer:
            assert answer.status == status


async def test_any_update_can_happen_also_twice(
    ctl: Any, simulator: Running, http: aiohttp.ClientSession
) -> None:
    poll = {"bot_id": BOT_ID, "update": {"poll": {"id": "1"}, "update_id": 77}}
    assert await ctl("POST", "updates", [poll, poll]) == [{"update_id": 77}, {"update_id": 77}]
    async with http.get(f"{simulator.url}/bot{TOKEN}/getUpdates") as answer:
        assert (await answer.json())["result"] == [{"update_id": 77, "poll": {"id": "1"}}] * 2


async def test_reset_clears_all_but_the_update_ids(ctl: Any, send: Any) -> None:
    message = {"bot_id": BOT_ID, "chat_id": 42, "text": "x"}
    before = await ctl("POST", "messages", message)
    await send("x")
    await ctl("PUT", "faults", {"kind": "500"})
    await ctl("POST", "reset")
    assert (await ctl("GET", "ledger"))["calls"] == []
    assert (await ctl("GET", "faults"))["faults"] == []
    assert (await ctl("GET", f"chats?bot_id={BOT_ID}"))["chats"] == []
    assert (await ctl("POST", "messages", message))["update_id"] == before["update_id"] + 1


@pytest.mark.parametrize(
    ("verb", "path", "body", "status", "says"),
    [
        ("POST", "messages", b"{", 400, "Input data was truncated"),
        ("POST", "messages", {"bot_id": 1, "chat_id": "x", "text": "t"}, 400, "$.chat_id"),
        ("POST", "messages", {"bot_id": 1, "chat_id": 1}, 400, "text"),
        (
            "POST",
            "callbacks",
            {"bot_id": 1, "chat_id": 1, "message_id": 1, "data": "d"},
            404,
            "bot 1 is not known",
        ),
        ("POST", "updates", {"bot_id": 1, "update": {"a": 1, "b": 2}}, 400, "one key"),
        ("PUT", "faults", {"kind": "nonsense"}, 400, "kind"),
        ("PUT", "faults", {"kind": "500", "metod": "x"}, 400, "metod"),
        ("PUT", "clock", {"scale": 0}, 400, "above 0"),
        ("PUT", "limits", {"mode": "perhaps"}, 400, "mode"),
        ("GET", "check?expected=x%20y:1", None, 400, "no stream"),
        ("GET", "ledger?nonsense=1", None, 400, "nonsense"),
        ("GET", "nowhere", None, 404, "no such call"),
        ("DELETE", "ledger", None, 405, "use GET"),
    ],
)
async def test_a_wrong_request_says_what_is_wrong(
    ctl: Any, verb: str, path: str, body: Any, status: int, says: str
) -> None:
    assert says in (await ctl(verb, path, body, status=status))["error"]


async def test_the_feed_tells_what_happens(
    simulator: Running, http: aiohttp.ClientSession, send: Any
) -> None:
    async with http.get(f"{simulator.url}/_ctl/events") as feed:
        assert feed.content_type == "text/event-stream"
        await feed.content.readuntil(b"\n\n")
        await send("live")
        async with asyncio.timeout(5):
            while b"event: message" not in (event := await feed.content.readuntil(b"\n\n")):
                pass
        assert json.loads(event.partition(b"data: ")[2])[2]["text"] == "live"


async def test_what_would_break_it_is_refused(ctl: Any) -> None:
    deep = b"[" * 100_000
    for verb, path in (("PUT", "faults"), ("PUT", "limits"), ("POST", "check"), ("POST", "messages")):
        await ctl(verb, path, deep, status=400)
    await ctl("PUT", "limits", {"mode": "enforced", "chat_per_second": 0}, status=400)
    assert "2,000,000" in (await ctl("GET", "check?expected=a1..99999999999:5", status=400))["error"]
    await ctl("POST", "check", b"")
