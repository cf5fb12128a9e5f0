"""Why Telegram gives no updates, and what a person can do: one line each."""

from dataclasses import dataclass

from pillarbox_ingest.bot_api import Refused

# tdlib/telegram-bot-api, Client.cpp
WEBHOOK_ACTIVE = "webhook is active"
WEBHOOK_SET = "terminated by setwebhook"
WAIT = "nothing, if it passes: it is tried again"


@dataclass(frozen=True, slots=True)
class Trouble:
    reason: str
    fix: str = ""
    webhook: bool = False


def of_refusal(error: Refused) -> Trouble:
    if error.status != 409:
        return Trouble(error.reason, WAIT)
    said = error.reason.lower()
    if WEBHOOK_ACTIVE in said or WEBHOOK_SET in said:
        return Trouble(
            "a webhook is set for this bot, and Telegram sends its updates there",
            "set RECEIVE=webhook to use it, or DELETE_WEBHOOK=true to take it away",
            webhook=True,
        )
    return Trouble(
        "another program asks for this bot's updates with the same token",
        "stop that program; if nobody knows it, revoke the token at @BotFather",
    )
