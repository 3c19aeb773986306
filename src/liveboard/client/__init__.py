"""The Python client: live windows of tables over one WebSocket, whole tables over HTTP.

    with liveboard.connect("http://127.0.0.1:8080", key) as client:
        client.table("final_ui").to_pandas()
        client.subscribe("final_ui", lambda update: print(update.rows), sort=[("balance", "desc")])
        for update in client.updates("final_ui"):
            ...
        client.query("SELECT accountType, sum(balance) FROM final_ui GROUP BY 1").to_pandas()

A client heals itself: when the connection or a table goes away, listeners keep their last rows, marked stale with the
time since, and get a snapshot when it is back. A client reads; it cannot change or delete a table.
"""

from liveboard.client.address import Unauthorized, Unreachable
from liveboard.client.asynchronous import AsyncClient, AsyncTable, AsyncUpdates, connect_async
from liveboard.client.subscription import Subscription
from liveboard.client.synchronous import Client, SyncSubscription, Updates, connect
from liveboard.client.table import QueryResult, Table
from liveboard.client.update import Update

__all__ = [
    "AsyncClient",
    "AsyncTable",
    "AsyncUpdates",
    "Client",
    "QueryResult",
    "Subscription",
    "SyncSubscription",
    "Table",
    "Unauthorized",
    "Unreachable",
    "Update",
    "Updates",
    "connect",
    "connect_async",
]
