"""The events that the measures feed, and the ways to produce them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple, Protocol

from confluent_kafka import Producer

from liveboard.errors import LiveboardError

FIRST_MS = 1_700_000_000_000
BALANCES = 100_000
"""How many different balances there are."""
HOT_ENRICHING = 500
"""In the as-of load on one key, one event in so many is an enriching one."""
_UNKNOWN_USERS = 100
"""One account event in about so many belongs to a user that never comes."""
_PATIENCE_S = 60.0


class Event(NamedTuple):
    """A record to be produced; without a time it gets that of its production."""

    topic: str
    value: bytes
    timestamp_ms: int = 0


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
        """An account whose type is its number."""
        return Event(self.topic, account_json(f"u{number * 7919 % self.users}", f"n{number}", number))


@dataclass(frozen=True)
class Mixed:
    """Nine accounts of users that are there, then a new user: each is one row of the left join."""

    users_topic: str
    accounts_topic: str
    users: int

    def event(self, number: int) -> Event:
        """An account whose type, or a user whose name is its number."""
        if self.is_user(number):
            return Event(self.users_topic, user_json(f"new{number}", f"n{number}"))
        return Accounts(self.accounts_topic, self.users).event(number)

    @staticmethod
    def is_user(number: int) -> bool:
        """Whether the event of that number is a user."""
        return number % 10 == 9


@dataclass(frozen=True)
class HotAsof:
    """Accounts of one user, in the order of time, and now and then a new version of that user."""

    users_topic: str
    accounts_topic: str

    def event(self, number: int) -> Event:
        """An account whose type, or a user whose name is its number."""
        at = FIRST_MS + number
        if self.is_driving(number):
            return Event(self.accounts_topic, account_json("hot", f"n{number}", number), at)
        return Event(self.users_topic, user_json("hot", f"n{number}"), at)

    @staticmethod
    def is_driving(number: int) -> bool:
        """Whether the event of that number is an account."""
        return number % HOT_ENRICHING != HOT_ENRICHING - 1

    @staticmethod
    def match(number: int) -> str | None:
        """The name in the row of the account of that number."""
        newest = number // HOT_ENRICHING * HOT_ENRICHING - 1
        return f"n{newest}" if newest >= 0 else None


@dataclass(frozen=True)
class HotInner:
    """Versions of one user, and a few accounts, which each make a row with every version."""

    users_topic: str
    accounts_topic: str
    accounts: frozenset[int]

    def event(self, number: int) -> Event:
        """An account where the number is one of `accounts`, else a user."""
        at = FIRST_MS + number
        if number in self.accounts:
            return Event(self.accounts_topic, account_json("hot", f"n{number}", number), at)
        return Event(self.users_topic, user_json("hot", f"n{number}"), at)

    def pairs(self, end: int) -> int:
        """The rows that all events before that number make."""
        accounts = sum(number < end for number in self.accounts)
        return accounts * (end - accounts)


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
                producer.produce(event.topic, event.value, partition=0, timestamp=event.timestamp_ms)
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
        producer.produce(event.topic, event.value, partition=0)
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
    return f'{{"userId":"{user}","accountType":"{kind}","balance":{number % BALANCES / 4}}}'.encode()
