import json
from typing import Any

import aiohttp
import pytest

from pillarbox_simulator import Running, running
from tests.support.simulator import BOT_ID, TOKEN
from tests.support.simulator_client import SimulatorClient

Post = dict[str, Any]


async def call(simulator: Running, http: aiohttp.ClientSession, method: str, **params: Any) -> Post:
    async with http.post(f"{simulator.url}/bot{TOKEN}/{method}", json=params) as answer:
        body: Post = await answer.json()
        assert answer.status == body.get("error_code", 200)
        return body


async def result(simulator: Running, http: aiohttp.ClientSession, method: str, **params: Any) -> Any:
    body = await call(simulator, http, method, **params)
    assert body["ok"], body
    return body["result"]


FORMS: list[tuple[str, dict[str, Any]]] = [
    ("GET", {"params": {"chat_id": "42", "text": "hi"}}),
    ("POST", {"params": {"chat_id": "42"}, "data": {"text": "hi"}}),
    ("POST", {"data": {"chat_id": "42", "text": "hi"}}),
    ("POST", {"json": {"chat_id": 42, "text": "hi"}}),
]


@pytest.mark.parametrize(("verb", "form"), FORMS)
async def test_a_call_comes_in_any_form(
    simulator: Running, http: aiohttp.ClientSession, control: SimulatorClient, verb: str, form: dict[str, Any]
) -> None:
    async with http.request(verb, f"{simulator.url}/bot{TOKEN}/SENDmessage", **form) as answer:
        assert answer.status == 200
        message = (await answer.json())["result"]
    assert (message["chat"]["id"], message["text"], message["from"]["id"]) == (42, "hi", BOT_ID)
    (entry,) = await control.ledger(method="sendMessage")
    assert entry["params"] == {"chat_id": 42, "text": "hi"}
    assert (entry["bot_id"], entry["status"], entry["effect"], entry["message_id"]) == (BOT_ID, 200, True, 1)


async def test_a_multipart_upload_can_be_fetched_again(
    simulator: Running, http: aiohttp.ClientSession
) -> None:
    form = aiohttp.FormData({"chat_id": "42", "caption": "see"})
    form.add_field("document", "attach://x")
    form.add_field("x", b"bytes", filename="a.txt", content_type="text/plain")
    async with http.post(f"{simulator.url}/bot{TOKEN}/sendDocument", data=form) as answer:
        document = (await answer.json())["result"]["document"]
    assert (document["file_name"], document["file_size"]) == ("a.txt", 5)
    file = await result(simulator, http, "getFile", file_id=document["file_id"])
    async with http.get(f"{simulator.url}/file/bot{TOKEN}/{file['file_path']}") as answer:
        assert await answer.read() == b"bytes"
    again = await result(simulator, http, "sendDocument", chat_id=43, document=document["file_id"])
    assert again["document"] == document


@pytest.mark.parametrize(
    ("path", "status", "description"),
    [
        ("/botnonsense/getMe", 401, "Unauthorized"),
        (f"/bot{TOKEN}/noSuchMethod", 404, "Not Found: method not found"),
        (f"/bot{TOKEN}", 404, "Not Found"),
    ],
)
async def test_what_is_no_call_is_refused(
    simulator: Running, http: aiohttp.ClientSession, path: str, status: int, description: str
) -> None:
    async with http.get(simulator.url + path) as answer:
        assert answer.status == status
        assert await answer.json() == {"ok": False, "error_code": status, "description": description}


async def test_with_tokens_given_only_they_are_bots(http: aiohttp.ClientSession) -> None:
    async with running(tokens=[TOKEN]) as simulator:
        assert (await result(simulator, http, "getMe"))["id"] == BOT_ID
        for other in ("700001:another-secret", "5:x"):
            async with http.get(f"{simulator.url}/bot{other}/getMe") as answer:
                assert answer.status == 401


@pytest.mark.parametrize(
    ("method", "params", "description"),
    [
        ("sendMessage", {"text": "x"}, "chat_id is empty"),
        ("sendMessage", {"chat_id": "@nobody", "text": "x"}, "chat not found"),
        ("sendMessage", {"chat_id": 42}, "message text is empty"),
        ("sendMessage", {"chat_id": 42, "text": "  "}, "message text is empty"),
        ("sendMessage", {"chat_id": 42, "text": "x" * 4097}, "message is too long"),
        ("sendMessage", {"chat_id": 42, "text": "😀" * 2049}, "message is too long"),
        (
            "sendMessage",
            {"chat_id": 42, "text": "x", "reply_parameters": {"message_id": 9}},
            "message to be replied not found",
        ),
        (
            "sendMessage",
            {
                "chat_id": 42,
                "text": "x",
                "reply_markup": {"inline_keyboard": [[{"text": "b", "callback_data": "x" * 65}]]},
            },
            "BUTTON_DATA_INVALID",
        ),
        ("sendPhoto", {"chat_id": 42}, "there is no photo in the request"),
        ("sendPhoto", {"chat_id": 42, "photo": "attach://x"}, "wrong file identifier/HTTP URL specified"),
        ("editMessageText", {"chat_id": 42, "message_id": 9, "text": "x"}, "message to edit not found"),
        ("deleteMessage", {"chat_id": 42, "message_id": 9}, "message to delete not found"),
        (
            "answerCallbackQuery",
            {"callback_query_id": "9"},
            "query is too old and response timeout expired or query ID is invalid",
        ),
    ],
)
async def test_what_telegram_refuses_is_refused_in_its_words_and_had_no_effect(
    simulator: Running,
    http: aiohttp.ClientSession,
    control: SimulatorClient,
    method: str,
    params: dict[str, Any],
    description: str,
) -> None:
    body = await call(simulator, http, method, **params)
    assert body == {"ok": False, "error_code": 400, "description": f"Bad Request: {description}"}
    (entry,) = (
        await control.ledger(chat_id=params.get("chat_id", ""), method=method) or await control.ledger()
    )
    assert (entry["status"], entry["effect"]) == (400, False)


async def test_a_message_is_edited_once_and_deleted(simulator: Running, http: aiohttp.ClientSession) -> None:
    keyboard = {"inline_keyboard": [[{"text": "b", "callback_data": "x"}]]}
    sent = await result(simulator, http, "sendMessage", chat_id=42, text="one", reply_markup=keyboard)
    place = {"chat_id": 42, "message_id": sent["message_id"]}
    edited = await result(simulator, http, "editMessageText", **place, text="two", reply_markup=keyboard)
    assert (edited["text"], edited["reply_markup"]) == ("two", keyboard)
    same = await call(simulator, http, "editMessageText", **place, text="two", reply_markup=keyboard)
    assert same["description"].startswith("Bad Request: message is not modified")
    bare = await result(simulator, http, "editMessageReplyMarkup", **place)
    assert "reply_markup" not in bare
    assert bare["text"] == "two"
    assert await result(simulator, http, "deleteMessage", **place) is True
    assert not (await call(simulator, http, "deleteMessage", **place))["ok"]


async def test_any_other_method_is_heard(
    simulator: Running, http: aiohttp.ClientSession, control: SimulatorClient
) -> None:
    assert await result(simulator, http, "setChatTitle", chat_id=-100, title="t") is True
    assert await result(simulator, http, "getChatMemberCount", chat_id=-100) == 2
    assert [entry["method"] for entry in await control.ledger()] == ["setChatTitle", "getChatMemberCount"]


async def test_a_secret_is_not_in_the_ledger(
    simulator: Running, http: aiohttp.ClientSession, control: SimulatorClient
) -> None:
    await result(simulator, http, "setWebhook", url="http://127.0.0.1:9/x", secret_token="hush-hush")
    assert "hush-hush" not in json.dumps(await control.ledger())


async def test_the_probes_and_the_page_answer(simulator: Running, http: aiohttp.ClientSession) -> None:
    for path in ("/healthz", "/readyz", "/metrics", "/", "/page.css", "/page.js"):
        async with http.get(simulator.url + path) as answer:
            assert answer.status == 200, path
    async with http.get(f"{simulator.url}/nothing") as answer:
        assert answer.status == 404
