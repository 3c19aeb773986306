"""A small shop: nested orders, products by key that are changed and deleted, and customers as Debezium writes them."""

from __future__ import annotations

import itertools
import json
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from liveboard.contract.board import Board
from liveboard.contract.errors import LiveboardError
from liveboard.sample.names import FIRST_NAMES, LAST_NAMES
from liveboard.sample.producing import Event

ORDERS, PRODUCTS, CUSTOMERS = TOPICS = ("shop.orders", "shop.products", "shop.customers")

_CATALOGUE = 40
_FIRST_CUSTOMERS = 20
_PRODUCT_CHANGES, _PRODUCT_DELETES, _CUSTOMER_CHANGES = 0.05, 0.01, 0.03
_THINGS = {
    "kitchen": ["kettle", "mug", "pan", "knife", "bowl", "whisk"],
    "garden": ["spade", "hose", "rake", "lantern", "bench", "seeds"],
    "office": ["lamp", "chair", "notebook", "pen", "stapler", "globe"],
}
_LOOKS = ["blue", "brass", "classic", "copper", "folding", "oak", "small", "travel", "white"]
_CITIES = {"Berlin": "DE", "Lagos": "NG", "Lisbon": "PT", "Lyon": "FR", "Oslo": "NO", "Osaka": "JP", "Quito": "EC"}
_STATES = ("paid", "paid", "paid", "open", "refunded")
_BAD_ORDERS = {
    "no JSON": b'{"orderId": 1, "customer": {',
    "text for an integer": b'{"orderId": "one", "total": "9.90"}',
    "a price that is none": b'{"orderId": 2, "total": "cheap"}',
    "a time that is none": b'{"orderId": 3, "placedAt": "soon"}',
}


@dataclass(frozen=True, kw_only=True)
class Options:
    """What is produced: `events` is a function of these."""

    seed: int = 1
    count: int | None = None
    bad: float = 0.0
    clock: Callable[[], float] = time.time
    """The seconds since 1970 that the events say they happened."""


def check(board: Board) -> None:
    """A LiveboardError unless the board reads orders of the shop."""
    topics = [source.topic for source in board.sources.values()]
    if ORDERS not in topics:
        raise LiveboardError(
            f"--sample: expected a board that reads {ORDERS}, as examples/shop.toml does, found {', '.join(topics)}"
        )


def events(options: Options) -> Iterator[Event]:
    """The events, first a catalogue and some customers, then mostly orders."""
    good = _Shop(random.Random(f"shop {options.seed}"), options.clock).events()
    chance = random.Random(f"broken shop {options.seed}")

    def every() -> Iterator[Event]:
        while True:
            yield _broken(chance) if chance.random() < options.bad else next(good)

    return itertools.islice(every(), options.count)


class _Shop:
    def __init__(self, chance: random.Random, clock: Callable[[], float]) -> None:
        self._chance = chance
        self._clock = clock
        self._products: dict[str, dict[str, Any]] = {}
        self._customers: dict[int, dict[str, Any]] = {}
        self._orders = itertools.count(100_001)
        self._transactions = itertools.count(1)
        self._customer_ids = itertools.count(1)

    def events(self) -> Iterator[Event]:
        for number in range(1, _CATALOGUE + 1):
            yield self._product(self._new_product(f"P-{number:04}"))
        for _ in range(_FIRST_CUSTOMERS):
            yield self._customer("c", None, self._new_customer())
        while True:
            chosen = self._chance.random()
            if chosen < _PRODUCT_DELETES:
                yield self._deleted_product()
            elif chosen < _PRODUCT_DELETES + _PRODUCT_CHANGES:
                yield self._changed_product()
            elif chosen < _PRODUCT_DELETES + _PRODUCT_CHANGES + _CUSTOMER_CHANGES:
                yield from self._customer_change()
            else:
                yield self._order()

    def _order(self) -> Event:
        bought = self._chance.sample(sorted(self._products), self._chance.choice((1, 1, 1, 2, 3)))
        customer = self._customers[self._chance.choice(sorted(self._customers))]
        items = [
            {"sku": sku, "quantity": self._chance.randint(1, 4), "price": self._products[sku]["price"]}
            for sku in bought
        ]
        order = {
            "orderId": next(self._orders),
            "placedAt": self._milliseconds(),
            "status": self._chance.choice(_STATES),
            "productId": bought[0],
            "customer": {
                "id": customer["id"],
                "name": customer["name"],
                "address": {"city": customer["city"], "country": _CITIES[customer["city"]]},
            },
            "items": items,
            "total": f"{sum(item['quantity'] * float(item['price']) for item in items):.2f}",
            "weight": round(self._chance.uniform(0.1, 12), 1),
            "gift": self._chance.random() < 0.1,
            "coupon": "WELCOME" if self._chance.random() < 0.2 else None,
        }
        headers = (
            ("trace-id", f"{self._chance.getrandbits(64):016x}".encode()),
            ("channel", self._chance.choice((b"web", b"app", b"shop"))),
        )
        return Event(ORDERS, str(order["orderId"]), _bytes(order), headers=headers)

    def _new_product(self, id_: str) -> str:
        category = self._chance.choice(sorted(_THINGS))
        self._products[id_] = {
            "productId": id_,
            "name": f"{self._chance.choice(_LOOKS)} {self._chance.choice(_THINGS[category])}",
            "category": category,
            "price": f"{self._chance.randint(3, 120)}.{self._chance.choice(('00', '50', '90'))}",
            "stock": self._chance.randint(0, 400),
            "supplier": {"name": f"{self._chance.choice(LAST_NAMES)} & Co", "country": self._country()},
        }
        return id_

    def _product(self, id_: str) -> Event:
        changed = datetime.fromtimestamp(self._clock(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return Event(PRODUCTS, id_, _bytes({**self._products[id_], "updatedAt": changed}))

    def _changed_product(self) -> Event:
        missing = [id_ for n in range(1, _CATALOGUE + 1) if (id_ := f"P-{n:04}") not in self._products]
        if missing and self._chance.random() < 0.3:
            return self._product(self._new_product(self._chance.choice(missing)))
        id_ = self._chance.choice(sorted(self._products))
        product = self._products[id_]
        product["stock"] = max(0, product["stock"] + self._chance.randint(-20, 25))
        if self._chance.random() < 0.3:
            product["price"] = f"{max(1.0, float(product['price']) * self._chance.uniform(0.9, 1.12)):.2f}"
        return self._product(id_)

    def _deleted_product(self) -> Event:
        if len(self._products) <= _CATALOGUE // 2:
            return self._changed_product()
        id_ = self._chance.choice(sorted(self._products))
        del self._products[id_]
        return Event(PRODUCTS, id_, None)

    def _customer_change(self) -> Iterator[Event]:
        chosen = self._chance.random()
        if chosen < 0.5:
            yield self._customer("c", None, self._new_customer())
            return
        id_ = self._chance.choice(sorted(self._customers))
        before = dict(self._customers[id_])
        if chosen < 0.9 or len(self._customers) <= _FIRST_CUSTOMERS // 2:
            self._customers[id_]["city"] = self._chance.choice(sorted(_CITIES))
            yield self._customer("u", before, self._customers[id_])
        else:
            del self._customers[id_]
            yield self._customer("d", before, None)
            # Debezium writes a tombstone after it, so that compaction can forget the key.
            yield Event(CUSTOMERS, json.dumps({"id": id_}), None)

    def _new_customer(self) -> dict[str, Any]:
        id_ = next(self._customer_ids)
        name = f"{self._chance.choice(FIRST_NAMES)} {self._chance.choice(LAST_NAMES)}"
        self._customers[id_] = {
            "id": id_,
            "name": name,
            "email": f"{name.lower().replace(' ', '.')}.{id_}@mailbox.example",
            "city": self._chance.choice(sorted(_CITIES)),
            "created_at": self._milliseconds() * 1_000,
        }
        return self._customers[id_]

    def _customer(self, operation: str, before: dict[str, Any] | None, after: dict[str, Any] | None) -> Event:
        row = after or before or {}
        change = {
            "before": before,
            "after": after,
            "source": {"connector": "postgresql", "db": "shop", "table": "customers", "txId": next(self._transactions)},
            "op": operation,
            "ts_ms": self._milliseconds(),
        }
        return Event(CUSTOMERS, json.dumps({"id": row["id"]}), _bytes(change))

    def _country(self) -> str:
        return self._chance.choice(sorted(_CITIES.values()))

    def _milliseconds(self) -> int:
        return int(self._clock() * 1_000)


def _broken(chance: random.Random) -> Event:
    what = chance.choice(sorted(_BAD_ORDERS))
    return Event(ORDERS, "broken", _BAD_ORDERS[what], what)


def _bytes(document: dict[str, Any]) -> bytes:
    return json.dumps(document).encode()
