"""A Deephaven server with the board's tables; runs in the peer's own virtual environment.

serve.py PORT BOOTSTRAP USERS ACCOUNTS JOIN[,JOIN] [JVM ARGUMENT …]
"""

from __future__ import annotations

import sys
import threading

from deephaven_server import Server

port, bootstrap, users, accounts, joins, *jvm_args = sys.argv[1:]
server = Server(port=int(port), jvm_args=jvm_args)
server.start()

from deephaven import agg, dtypes  # noqa: E402  the engine can be imported only when its Java runs
from deephaven.stream.kafka import consumer  # noqa: E402
from deephaven.table import Table  # noqa: E402

_USERS = {"userId": dtypes.string, "name": dtypes.string, "email": dtypes.string, "age": dtypes.int64}
_ACCOUNTS = {"userId": dtypes.string, "accountType": dtypes.string, "balance": dtypes.double}


def _read(topic: str, columns: dict[str, dtypes.DType]) -> Table:
    """The whole topic as an append-only table, with the record's time as `ts`."""
    return consumer.consume(
        {"bootstrap.servers": bootstrap, "deephaven.timestamp.column.name": "ts"},
        topic,
        offsets=consumer.ALL_PARTITIONS_SEEK_TO_BEGINNING,
        key_spec=consumer.KeyValueSpec.IGNORE,
        value_spec=consumer.json_spec(columns),
        table_type=consumer.TableType.append(),
    ).drop_columns(["KafkaPartition", "KafkaOffset"])


def _joined(how: str, left: Table, right: Table) -> Table:
    if how == "left":
        return left.natural_join(right.last_by("userId"), on="userId", joins=["accountType", "balance"])
    if how == "inner":
        return left.join(right, on="userId", joins=["accountType", "balance"])
    if how == "by_type":
        measures = [agg.count_("accounts"), agg.sum_("total=balance"), agg.max_(["largest=balance", "newest=ts"])]
        return right.agg_by(measures, by="accountType")
    return right.aj(left, on=["userId", "ts >= ts"], joins=["name", "email", "age"])


def board(users_topic: str, accounts_topic: str, kinds: str) -> dict[str, Table]:
    """The source tables and the joins: final_ui, user_account, and the totals by_type."""
    left, right = _read(users_topic, _USERS), _read(accounts_topic, _ACCOUNTS)
    tables = {"users_ui": left, "accounts_ui": right}
    return tables | {
        name: _joined(how, left, right)
        for name, how in zip(("final_ui", "user_account", "by_type"), kinds.split(","), strict=False)
    }


globals().update(board(users, accounts, joins))
threading.Event().wait()
