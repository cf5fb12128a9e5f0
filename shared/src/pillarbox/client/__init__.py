"""Failed updates and pins from any program: over admin's REST API, or straight on the inbox's database.

async with Client("http://admin:8083", token=TOKEN, bot_id=42) as client: …      asyncio
with SyncClient("bot.db", bot_id=42) as client: …       scripts, Django, notebooks
"""

from pillarbox.client.asynchronous import Client
from pillarbox.client.blocking import SyncClient
from pillarbox.inbox import FailedUpdate, Filter, Moved, Pin

__all__ = ["Client", "FailedUpdate", "Filter", "Moved", "Pin", "SyncClient"]
