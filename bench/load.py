"""The events that the measures feed, and the ways to produce them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import ceil
from random import Random
from typing import Any, NamedTuple, Protocol

from confluent_kafka import Producer

from liveboard.contract.errors import LiveboardError

FIRST_MS = 1_700_000_000_000
ACCOUNT_TYPES = ("checking", "savings", "credit", "brokerage", "mortgage")
NUMBER_MARK = ".125"
"""What the balances of numbered accounts end with; all others are a number of quarters."""
BALANCES = 100_000
"""How many different balances there are."""
_UNKNOWN_USERS = 100
"""One account event in about so many belongs to a user that never comes."""
_KEYED_ACCOUNTS = 3
"""How many accounts a key has at most in the history of `Keyed`: few, so that pairs stay few."""
_KEYED_EVENTS = 100
"""Of the events of `Keyed`, one in so many is an account."""
_PATIENCE_S = 60.0


class Event(NamedTuple):
    """A record to be produced; without a time it gets that of its production."""

    topic: str
    value: bytes
    timestamp_ms: int = 0
    key: str | None = None
    late_ms: int = 0
    """How long before its production it happened, where it is produced in the course of an even load."""


class Load(Protocol):
    """Events by number, for the ones that are numbered to be found again in the changelogs."""

    def event(self, number: int) -> Event:
        """The event of that number."""
        ...


@dataclass(frozen=True)
class History:
    """Distinct users, and accounts of users at random; a few belong to nobody."""

    users_topic: str
    accounts_topic: str
    users: int
    accounts: int

    def events(self) -> Iterable[Event]:
        """All users, then all accounts; in event time they are mixed."""
        spread = self.accounts // self.users
        for user in range(self.users):
            yield Event(self.users_topic, user_json(f"u{user}", f"Ada {user}"), FIRST_MS + user * spread)
        for number, user in enumerate(self.owners()):
            yield Event(self.accounts_topic, account_json(f"u{user}", "savings", number), FIRST_MS + number)

    def pairs(self) -> int:
        """How many accounts have their user."""
        return sum(user < self.users for user in self.owners())

    def owners(self) -> Iterable[int]:
        """Whose the accounts are, in their order; from `users` on nobody's."""
        chance, possible = Random(1), self.users + self.users // _UNKNOWN_USERS
        return (chance.randrange(possible) for _ in range(self.accounts))


@dataclass(frozen=True)
class Accounts:
    """Accounts of users that are there: each is one row of the left and one of the as-of join."""

    topic: str
    users: int

    def event(self, number: int) -> Event:
        """An account of one of a few types, whose balance tells its number."""
        user, kind = f"u{number * 7919 % self.users}", ACCOUNT_TYPES[number % len(ACCOUNT_TYPES)]
        return Event(self.topic, account_text(user, kind, f"{number}{NUMBER_MARK}"))


@dataclass(frozen=True)
class Mixed:
    """Nine accounts of users that are there, then a new user: each is one row of the left join."""

    users_topic: str
    accounts_topic: str
    users: int

    def event(self, number: int) -> Event:
        """An account whose balance tells its number, or a user whose name does."""
        if self._is_user(number):
            return Event(self.users_topic, user_json(f"new{number}", f"n{number}"))
        return Accounts(self.accounts_topic, self.users).event(number)

    def shows(self, number: int, how: str) -> bool:
        """Every event is seen in the left join; only accounts are, in the as-of join and in aggregates of them."""
        return how == "left" or not self._is_user(number)

    @staticmethod
    def _is_user(number: int) -> bool:
        return number % 10 == 9


@dataclass(frozen=True)
class Keyed:
    """Users that come again and again under the same keys, and now and then an account of theirs."""

    users_topic: str
    accounts_topic: str
    keys: int
    per_key: int
    """How many records each key has in the history, from 3."""
    accounts_come: bool
    """Whether accounts come after the history too."""

    @property
    def accounts_per_key(self) -> int:
        """How many of a key's records in the history are accounts, its first among them."""
        return min(_KEYED_ACCOUNTS, self.per_key // 3)

    def history(self) -> Iterable[Event]:
        """All keys in turn, in the order of time."""
        apart = ceil(self.per_key / self.accounts_per_key)
        for number in range(self.keys * self.per_key):
            key, at = f"u{number % self.keys}", FIRST_MS + number
            if number // self.keys % apart == 0:
                yield Event(self.accounts_topic, account_json(key, "savings", number), at)
            else:
                yield Event(self.users_topic, user_json(key, f"Ada {number}"), at)

    def rows(self, how: str) -> int:
        """The rows that the history makes in a join of that kind."""
        users = self.keys * (self.per_key - self.accounts_per_key)
        return users * self.accounts_per_key if how == "inner" else users

    def event(self, number: int) -> Event:
        """A user whose name is its number, or an account."""
        key = f"u{number * 7919 % self.keys}"
        if self._is_account(number):
            return Event(self.accounts_topic, account_json(key, "savings", number))
        return Event(self.users_topic, user_json(key, f"n{number}"))

    def shows(self, number: int, how: str) -> bool:
        """Every user is seen, whatever the join; accounts have no number."""
        return not self._is_account(number)

    def _is_account(self, number: int) -> bool:
        return self.accounts_come and number % _KEYED_EVENTS == _KEYED_EVENTS - 1


class Burst(NamedTuple):
    """When a burst was given to Kafka."""

    started_ns: int
    seconds: float


class Pace(NamedTuple):
    """When each event of an even load was given to Kafka, and how far behind its time the latest was."""

    sent_ns: list[int]
    late_s: float


def burst(bootstrap: str, load: Load, first: int, count: int) -> Burst:
    """Produces events as fast as possible; they are made before the clock starts."""
    return produce(bootstrap, [load.event(number) for number in range(first, first + count)])


def produce(bootstrap: str, events: Iterable[Event]) -> Burst:
    """Produces events as fast as possible and returns when Kafka has them."""
    producer = _producer(bootstrap, {"linger.ms": 5, "queue.buffering.max.messages": 500_000})
    started_ns = time.time_ns()
    for event in events:
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            try:
                producer.produce(event.topic, event.value, event.key, partition=0, timestamp=event.timestamp_ms)
                break
            except BufferError:
                if time.monotonic() > deadline:
                    raise LiveboardError(f"Kafka took no event for {_PATIENCE_S:.0f} s") from None
                producer.poll(0.05)
    _flush(producer)
    return Burst(started_ns, (time.time_ns() - started_ns) / 1e9)


def pace(
    bootstrap: str, load: Load, first: int, count: int, rate: int, clock: Callable[[], int] = time.time_ns
) -> Pace:
    """Produces events evenly, each at its time, and never waits for anything else."""
    producer = _producer(bootstrap, {"linger.ms": 0, "socket.nagle.disable": True})
    events = [load.event(number) for number in range(first, first + count)]
    sent_ns, late_s = [], 0.0
    begin = time.perf_counter() + 0.1
    for number, event in enumerate(events):
        early_s = begin + number / rate - time.perf_counter()
        if early_s > 0:
            time.sleep(early_s)
        late_s = max(late_s, -early_s)
        sent_ns.append(clock())
        happened_ms = time.time_ns() // 1_000_000 - event.late_ms
        producer.produce(event.topic, event.value, partition=0, timestamp=happened_ms)
        producer.poll(0)
    _flush(producer)
    return Pace(sent_ns, late_s)


def _producer(bootstrap: str, options: dict[str, Any]) -> Producer:
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0, **options})
    producer.list_topics(timeout=_PATIENCE_S)  # connects
    return producer


def _flush(producer: Producer) -> None:
    if left := producer.flush(_PATIENCE_S):
        raise LiveboardError(f"Kafka did not take the last {left} events within {_PATIENCE_S:.0f} s")


def user_json(user: str, name: str) -> bytes:
    """A record of the users topic."""
    return f'{{"userId":"{user}","name":"{name}","email":"{user}@acme.example","age":{18 + len(name)}}}'.encode()


def account_json(user: str, kind: str, number: int) -> bytes:
    """A record of the accounts topic."""
    return account_text(user, kind, str(number % BALANCES / 4))


def account_text(user: str, kind: str, balance: str) -> bytes:
    """The same with a balance as it is to be written."""
    return f'{{"userId":"{user}","accountType":"{kind}","balance":{balance}}}'.encode()
