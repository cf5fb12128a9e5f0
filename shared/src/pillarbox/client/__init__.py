"""Failed updates, pins and messages from any program: over admin's REST API, or straight there.

async with Client("http://admin:8083", token=TOKEN, bot_id=42) as client: …      asyncio
with SyncClient("bot.db", bot_id=42) as client: …       scripts, Django, notebooks
"""

from pillarbox.client.asynchronous import Client
from pillarbox.client.blocking import SyncClient
from pillarbox.inbox import FailedUpdate, Filter, Moved, Pin
from pillarbox.outbound.acts import MovedDead
from pillarbox.outbound.cancelling import Cancelled
from pillarbox.outbound.dead import Dead

__all__ = ["Cancelled", "Client", "Dead", "FailedUpdate", "Filter", "Moved", "MovedDead", "Pin", "SyncClient"]
