"""A board whose rows have real records behind them: what the pipeline would have made of three topics."""

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
JOINS_BY_KEY = {"owned": "left", "kept_pairs": "inner", "owners": "asof"}
TABLES = {
    "users_ui": USERS,
    "accounts_ui": ACCOUNTS,
    "kept_ui": USERS,
    **dict.fromkeys((*JOINS, *JOINS_BY_KEY), JOINED),
    "rejects_ui": REJECT_COLUMNS,
}
DESCRIBED = {
    "sources": {
        "users": {"table": "users_ui"},
        "accounts": {"table": "accounts_ui"},
        "kept": {"table": "kept_ui", "mode": "upsert", "key": ["userId"]},
    },
    "joins": {
        **{name: {"left": "users", "right": "accounts", "on": "userId"} for name in JOINS},
        "owned": {"left": "accounts", "right": "kept", "on": "userId"},
        "kept_pairs": {"left": "kept", "right": "accounts", "on": "userId"},
        "owners": {"left": "accounts", "right": "kept", "on": "userId"},
    },
}
BEGIN_MS = 1_769_850_000_000
_numbers = count(1)


class Origins:
    """Three topics, a generation made of them, and its rows."""

    def __init__(self, board: Board) -> None:
        number = next(_numbers)
        self.topics = {source: f"origin-{source}-{number}" for source in ("users", "accounts", "kept")}
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
        # Of a key the newest counts; others came in the same millisecond.
        self.send("kept", {"userId": "a:b", "name": "Ann"}, 0)
        for name in ("Amy", "Ada"):
            self.send("kept", {"before": None, "after": {"userId": "a:b", "name": name}}, 2)
        self.send("kept", {"userId": "b", "name": "a:b"}, 2)
        self.send("kept", b"\x00 not text: \xff", 5)
        self.generation = board.build(TABLES, Wiring(self.topics, {**JOINS, **JOINS_BY_KEY}), DESCRIBED)
        ada, bob = ["a", "Ada"], ["b", "Bob"]
        rows: dict[str, dict[str, list[Any]]] = {
            "users_ui": {"0-0": [*ada, at(0)], "0-1": [*bob, at(2)]},
            "accounts_ui": {"0-0": ["a", 1.5, at(0)], "0-1": ["a", 2.5, at(1)], "0-2": ["a", 3.5, at(3)]},
            "final_ui": {"0-0": [*ada, 3.5, at(0)], "0-1": [*bob, None, at(2)]},
            "pairs": {"0-0:0-1": [*ada, 2.5, at(0)]},
            "nearest": {"0-0": [*ada, 1.5, at(0)], "entity": [*bob, None, at(2)]},
            "kept_ui": {
                '="a:b"': ["a:b", "Ada", at(2)],
                "=7": ["7", "Bytes", at(5)],
                '="gone"': ["gone", "Gil", at(9)],
            },
            "owned": {"0-0": ["a:b", "Ada", 1.5, at(0)]},
            "kept_pairs": {'="a:b":0-1': ["a:b", "Ada", 2.5, at(2)]},
            "owners": {"0-0": ["a:b", "Ann", 1.5, at(0)], "0-2": ["a:b", "Ada", 3.5, at(3)]},
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
