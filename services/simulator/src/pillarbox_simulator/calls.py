"""The way of a Bot API call: bot, method, parameters, fault, limit, effect, ledger, answer."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from pillarbox_simulator import params as parameters
from pillarbox_simulator.answers import Answer, Refused, Silence, ok, refusal
from pillarbox_simulator.bots import Bot, Bots
from pillarbox_simulator.call import Call
from pillarbox_simulator.clock import Clock
from pillarbox_simulator.faults import Faults
from pillarbox_simulator.ledger import Entry, Ledger
from pillarbox_simulator.limits import Limiter
from pillarbox_simulator.methods import METHODS, heard
from pillarbox_simulator.names import BY_NAME
from pillarbox_simulator.params import NO_UPLOADS, Params, Uploads

Slow = Callable[[Call], Awaitable[Answer]]
"""A method that may wait: it gives the whole answer."""

NOT_IN_REPLIES = frozenset(("deleteMessage", "setWebhook", "deleteWebhook", "close", "logOut"))


class Calls:
    def __init__(self, bots: Bots, ledger: Ledger, faults: Faults, limiter: Limiter, clock: Clock) -> None:
        self._bots = bots
        self._ledger = ledger
        self._faults = faults
        self._limiter = limiter
        self._clock = clock
        self.slow: dict[str, Slow] = {}

    async def answer(self, token: str, name: str, kind: bytes, query: bytes, body: bytes) -> Answer | Silence:
        """What a request to `/bot<token>/<name>` gets. What is no call of a bot is not in the ledger."""
        try:
            bot = self._bots.by_token(token)
            method = BY_NAME.get(name) or BY_NAME.get(name.lower())
            if method is None:
                raise Refused(404, "Not Found: method not found")
            params, uploads = parameters.read(kind, query, body)
        except Refused as refused:
            return refusal(refused)
        return await self.execute(bot, method, params, uploads)

    async def reply(self, bot: Bot, name: str, params: Params, uploads: Uploads) -> None:
        """A call that came in the answer of a webhook (Bot API, "Making requests when getting updates")."""
        method = BY_NAME.get(name.lower())
        if method is not None and method not in NOT_IN_REPLIES and not method.startswith("get"):
            await self.execute(bot, method, params, uploads, via="webhook")

    async def execute(
        self, bot: Bot, method: str, params: Params, uploads: Uploads = NO_UPLOADS, via: str = "http"
    ) -> Answer | Silence:
        entry = Entry(bot.id, method, _shown(method, params), self._clock.now(), via=via)
        rule = self._faults.pick(bot.id, method, params.get("chat_id")) if self._faults else None
        if rule is not None and not rule.fault.takes_effect:
            return self._record(entry, rule.answer())
        answer = await self._carry_out(Call(bot, method, params, uploads, entry.at), entry)
        entry.effect = answer.status == 200
        if rule is None or rule.fault.kind == "slow":
            self._record(entry, answer)
            if rule is not None:
                await asyncio.sleep(rule.fault.delay)
            return answer
        return self._record(entry, rule.answer())

    async def _carry_out(self, call: Call, entry: Entry) -> Answer:
        try:
            self._limiter.admit(call)
            slow = self.slow.get(call.method)
            if slow is not None:
                return await slow(call)
            result: Any = METHODS.get(call.method, heard)(call)
        except Refused as refused:
            return refusal(refused)
        if type(result) is dict:
            entry.message_id = result.get("message_id")
        return ok(result)

    def _record(self, entry: Entry, answer: Answer | Silence) -> Answer | Silence:
        if isinstance(answer, Answer):
            entry.status, entry.retry_after = answer.status, answer.retry_after
        self._ledger.append(entry)
        return answer


def _shown(method: str, params: Params) -> Params:
    if method == "setWebhook" and "secret_token" in params:
        return params | {"secret_token": "***"}
    return params
