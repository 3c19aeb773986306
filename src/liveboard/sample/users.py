"""Believable users and accounts for the default board: the only module that knows what its sources mean."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from liveboard.contract.board import Board
from liveboard.contract.errors import LiveboardError
from liveboard.sample.names import FIRST_NAMES, LAST_NAMES
from liveboard.sample.producing import Event

USERS_COLUMNS = {"userId": "string", "name": "string", "email": "string", "age": "bigint"}
ACCOUNTS_COLUMNS = {"userId": "string", "accountType": "string", "balance": "double"}


_MAIL_DOMAINS = ["acme.example", "fastpost.example", "inbox.example", "mailbox.example", "northwind.example"]
_TYPICAL_BALANCES = {
    "checking": 2_500,
    "savings": 12_000,
    "credit": 900,
    "brokerage": 40_000,
    "mortgage": 180_000,
}
_ACCOUNT_TYPES = tuple(_TYPICAL_BALANCES)

_USER_EVENTS = 0.1  # of all events; the others are accounts
_FIRST_USERS = 20  # come faster, so that the first tables are not all about one
_FIRST_USER_EVENTS = 0.5
_CHANGES = 0.2  # of the user events, while there are still new users
_MOST_ACCOUNTS_BEFORE_USER = 5
_OVERDRAWN = 0.01  # of the account events: a bill comes before the money, until the account's next event


@dataclass(frozen=True, kw_only=True)
class Options:
    """What is produced. `events` is a function of all of these but the rate."""

    seed: int = 1
    rate: float = 50.0
    """Events per second; 0 is as fast as possible."""
    count: int | None = None
    """How many events; None is for ever."""
    users: int = 1_000
    late_users: float = 0.1
    """The fraction of users whose user event comes after their first accounts."""
    bad: float = 0.0
    """The fraction of events that cannot be read, of all kinds alike."""
    hot_keys: int = 0
    """How many users get half of all accounts."""
    users_topic: str = "users"
    accounts_topic: str = "accounts"
    too_large: int = 1_048_577
    """The bytes of a value that is over the sources' limit."""


@dataclass
class _User:
    id: str
    name: str
    domain: str
    age: int
    accounts_to_come_first: int
    balances: dict[str, float] = field(default_factory=dict)


def options_for(board: Board, **chosen: Any) -> Options:
    """Options with the topics and the limit of the board's sources, which must be the default board's two."""
    for name, columns in (("users", USERS_COLUMNS), ("accounts", ACCOUNTS_COLUMNS)):
        source = board.sources.get(name)
        found = {column.name: column.type for column in source.columns} if source else {}
        if columns.items() - found.items():
            expected = ", ".join(f"{column} {type_}" for column, type_ in columns.items())
            described = ", ".join(f"{column} {type_}" for column, type_ in found.items())
            what = f'the schema "{described}"' if source else f"only {', '.join(board.sources)}"
            raise LiveboardError(
                f'board.sources.{name}: expected a source with the schema "{expected}", since sample data is '
                f"made for the default board, found {what}; produce events of your own for this board"
            )
    users, accounts = board.sources["users"], board.sources["accounts"]
    return Options(
        users_topic=users.topic,
        accounts_topic=accounts.topic,
        too_large=1 + max(users.max_value_bytes, accounts.max_value_bytes),
        **chosen,
    )


def events(options: Options) -> Iterator[Event]:
    """The events, the same for the same options; broken ones come between the good ones and change none."""
    good = _good_events(options)
    chance = random.Random(f"broken {options.seed}")

    def every() -> Iterator[Event]:
        while True:
            yield _broken(options, chance) if chance.random() < options.bad else next(good)

    return itertools.islice(every(), options.count)


def _good_events(options: Options) -> Iterator[Event]:
    chance = random.Random(f"good {options.seed}")
    known: list[_User] = []
    while True:
        share = _FIRST_USER_EVENTS if len(known) < min(_FIRST_USERS, options.users) else _USER_EVENTS
        if not known or chance.random() < share:
            if known and (len(known) >= options.users or chance.random() < _CHANGES):
                user = chance.choice(known)
                _change(user, chance)
            else:
                user = _new_user(len(known), options, chance)
                known.append(user)
            # A late user's event waits for its first accounts, of which this is one.
            if not user.accounts_to_come_first:
                yield _user_event(options, user)
                continue
        else:
            user = _choose(known, options.hot_keys, chance)
        yield _account_event(options, user, chance)
        if user.accounts_to_come_first:
            user.accounts_to_come_first -= 1
            if not user.accounts_to_come_first:
                yield _user_event(options, user)


def _new_user(number: int, options: Options, chance: random.Random) -> _User:
    late = chance.random() < options.late_users
    return _User(
        id=f"u{number + 1:05}",
        name=f"{chance.choice(FIRST_NAMES)} {chance.choice(LAST_NAMES)}",
        domain=chance.choice(_MAIL_DOMAINS),
        age=min(95, max(18, round(chance.gauss(44, 15)))),
        accounts_to_come_first=chance.randint(1, _MOST_ACCOUNTS_BEFORE_USER) if late else 0,
    )


def _change(user: _User, chance: random.Random) -> None:
    user.domain = chance.choice([domain for domain in _MAIL_DOMAINS if domain != user.domain])
    if chance.random() < 0.2:
        user.age += 1


def _choose(known: list[_User], hot_keys: int, chance: random.Random) -> _User:
    hot = min(hot_keys, len(known))
    if hot and (hot == len(known) or chance.random() < 0.5):
        return known[chance.randrange(hot)]
    return known[chance.randrange(hot, len(known))]


def _user_event(options: Options, user: _User) -> Event:
    email = f"{user.name.lower().replace(' ', '.')}.{int(user.id[1:])}@{user.domain}"
    row = {"userId": user.id, "name": user.name, "email": email, "age": user.age}
    return Event(options.users_topic, user.id, json.dumps(row).encode())


def _account_event(options: Options, user: _User, chance: random.Random) -> Event:
    # Most users have two kinds of account, so that their balances are seen to wander.
    kind = _ACCOUNT_TYPES[(int(user.id[1:]) + chance.choice((0, 0, 0, 2))) % len(_ACCOUNT_TYPES)]
    typical = _TYPICAL_BALANCES[kind]
    before = user.balances.get(kind, typical * chance.lognormvariate(0, 0.6))
    user.balances[kind] = round(before + chance.gauss(0, typical * 0.03), 2)
    balance = user.balances[kind]
    if chance.random() < _OVERDRAWN:
        balance = -round(typical * chance.uniform(0.01, 0.1), 2)
    row = {"userId": user.id, "accountType": kind, "balance": balance}
    return Event(options.accounts_topic, user.id, json.dumps(row).encode())


_BAD_USER = '{{"userId": "{id}", "name": "{name}", "email": "{id}@broken.example", "age": {age}}}'
_BAD_ACCOUNT = '{{"userId": "{id}", "accountType": "checking", "balance": {balance}}}'
_BAD_AGES = {
    "text for an integer": '"x"',
    "digits in quotes for an integer": '"42"',
    "a fraction for an integer": "3.7",
    "an integer out of 64 bits": "99999999999999999999",
}
_BAD_BALANCES = {"text for a double": '"x"', "not a number": "NaN", "a double out of range": "1e400"}
_BAD_VALUES = {"no JSON": b'{"userId": "u', "an array": b'["u00001", 12.5]', "a text": b'"u00001"'}
BROKEN = (*_BAD_AGES, *_BAD_BALANCES, *_BAD_VALUES, "not UTF-8", "too large")
"""Everything that can be wrong with an event."""


def _broken(options: Options, chance: random.Random) -> Event:
    what = chance.choice(BROKEN)
    id_ = f"u{chance.randint(1, options.users):05}"
    topic = options.users_topic
    if what in _BAD_BALANCES:
        topic = options.accounts_topic
        value = _BAD_ACCOUNT.format(id=id_, balance=_BAD_BALANCES[what]).encode()
    elif what in _BAD_VALUES:
        topic = chance.choice([options.users_topic, options.accounts_topic])
        value = _BAD_VALUES[what]
    elif what == "not UTF-8":
        value = _BAD_USER.format(id=id_, name="Ren?", age=40).encode().replace(b"?", b"\xe9")
    elif what == "too large":
        empty = _BAD_USER.format(id=id_, name="", age=40)
        value = _BAD_USER.format(id=id_, name="x" * (options.too_large - len(empty)), age=40).encode()
    else:
        value = _BAD_USER.format(id=id_, name="Bad Age", age=_BAD_AGES[what]).encode()
    return Event(topic, id_, value, what)
