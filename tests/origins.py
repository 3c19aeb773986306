"""A board whose rows have real records behind them: what the pipeline would have made of two topics."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

from confluent_kafka import Producer
from live import PATIENCE_S, Board

from liveboard.contract.board import Wiring
from liveboard.contract.changelog import timestamp_text
from liveboard.contract.schema import REJECT_COLUMNS, TS, Column
from liveboard.kafka.admin import Admin

_ID, _NAME, _BALANCE = Column("userId", "string"), Column("name", "string"), Column("balance", "double")
USERS, ACCOUNTS, JOINED = (_ID, _NAME, TS), (_ID, _BALANCE, TS), (_ID, _NAME, _BALANCE, TS)
JOINS = {"final_ui": "left", "pairs": "inner", "nearest": "asof"}
TABLES = {"users_ui": USERS, "accounts_ui": ACCOUNTS, **dict.fromkeys(JOINS, JOINED), "rejects_ui": REJECT_COLUMNS}
DESCRIBED = {
    "sources": {"users": {"table": "users_ui"}, "accounts": {"table": "accounts_ui"}},
    "joins": {name: {"left": "users", "right": "accounts", "on": "userId"} for name in JOINS},
}
BEGIN_MS = 1_769_850_000_000
_numbers = count(1)


class Origins:
    """Two topics, a generation made of them, and its rows."""

    def __init__(self, board: Board) -> None:
        number = next(_numbers)
        self.topics = {"users": f"origin-users-{number}", "accounts": f"origin-accounts-{number}"}
        self.admin = Admin({"bootstrap.servers": board.bootstrap})
        self.admin.create(self.topics.values())
        self._producer = Producer({"bootstrap.servers": board.bootstrap, "log_level": 0})
        # Ada comes first, then two of her accounts, then Bob, then Ada's newest account.
        self.send("users", {"userId": "a", "name": "Ada", "secret": "of Ada"}, 0)
        self.send("accounts", {"userId": "a", "balance": 1.5}, 0)
        self.send("accounts", {"userId": "a", "balance": 2.5}, 1)
        self.send("users", {"userId": "b", "name": "Bob"}, 2)
        self.send("accounts", {"userId": "a", "balance": 3.5}, 3)
        self.send("users", b'{"userId": 7}', 4)
        self.generation = board.build(TABLES, Wiring(self.topics, JOINS), DESCRIBED)
        ada, bob = ["a", "Ada"], ["b", "Bob"]
        rows: dict[str, dict[str, list[Any]]] = {
            "users_ui": {"0-0": [*ada, at(0)], "0-1": [*bob, at(2)]},
            "accounts_ui": {"0-0": ["a", 1.5, at(0)], "0-1": ["a", 2.5, at(1)], "0-2": ["a", 3.5, at(3)]},
            "final_ui": {"0-0": [*ada, 3.5, at(0)], "0-1": [*bob, None, at(2)]},
            "pairs": {"0-0:0-1": [*ada, 2.5, at(0)]},
            "nearest": {"0-0": [*ada, 1.5, at(0)], "=entity": [*bob, None, at(2)]},
            "rejects_ui": {
                f"{self.topics['users']}-0-2": [
                    self.topics["users"],
                    0,
                    2,
                    "userId: expected string, found number",
                    '{"userId": 7}',
                    at(4),
                ]
            },
        }
        for table, some in rows.items():
            board.write(self.generation, some, table)
        board.switch(self.generation)

    def send(self, source: str, value: dict[str, Any] | bytes, second: int) -> None:
        """A record of a source."""
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        self._producer.produce(self.topics[source], body, f"key {second}", timestamp=BEGIN_MS + 1000 * second)
        assert self._producer.flush(PATIENCE_S) == 0


def at(second: int) -> str:
    """The time of a record."""
    return timestamp_text(BEGIN_MS + 1000 * second)
