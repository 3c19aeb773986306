"""The events that both systems get."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from load import ACCOUNT_TYPES, BALANCES, FIRST_MS, Event, History, account_json, account_text, user_json

WINDOW = 300
# Prime to the numbers of rows: events go round all of them.
_STRIDE = 7919
QUOTES_PER_TRADE = 10
EVENTS_PER_TRADE = QUOTES_PER_TRADE + 1
_SYMBOLS = 500
_JITTER_MS = 6


@dataclass(frozen=True)
class Content:
    """What tells whether a joined table is right: its rows, those of them with a match, and the sum of all balances."""

    matched_column: str
    rows: int
    matched: int
    balance: float


@dataclass(frozen=True)
class Past:
    """A history whose last user and last account belong together and carry its mark.

    Both are the newest of their topics in every order, so a joined table that shows the mark, in its last row, has
    read both topics to their ends.
    """

    users_topic: str
    accounts_topic: str
    users: int
    accounts: int
    mark: str

    def events(self) -> Iterable[Event]:
        """All users, then all accounts; in event time they are mixed."""
        history, end = self._history(), FIRST_MS + self.accounts
        for event in history.events():
            if event.topic == self.users_topic:
                yield event
        yield Event(self.users_topic, user_json("last", self.mark), end)
        for event in history.events():
            if event.topic == self.accounts_topic:
                yield event
        yield Event(self.accounts_topic, account_json("last", self.mark, 0), end + 1)

    def content(self, how: str) -> Content:
        """What the join of that kind must come to, worked out record by record."""
        history = self._history()
        owners = list(history.owners())
        spread = history.accounts // history.users
        balances = [number % BALANCES / 4 for number in range(history.accounts)]
        if how == "asof":
            known = sum(user < history.users and user * spread <= at for at, user in enumerate(owners))
            return Content("name", self.accounts, known + 1, sum(balances))
        if how == "left":
            newest = {user: balance for user, balance in zip(owners, balances, strict=True) if user < history.users}
            return Content("accountType", self.users, len(newest) + 1, sum(newest.values()))
        pairs = [balance for user, balance in zip(owners, balances, strict=True) if user < history.users]
        return Content("accountType", len(pairs) + 1, len(pairs) + 1, sum(pairs))

    def _history(self) -> History:
        return History(self.users_topic, self.accounts_topic, self.users - 1, self.accounts - 1)


@dataclass(frozen=True)
class Present:
    """Users with accounts in turn, of which one of the first user is the last; the window's users are then changed."""

    users_topic: str
    accounts_topic: str
    users: int
    accounts: int
    mark: str = "ready"
    rows: int = WINDOW
    """How many of the first users are changed."""

    def events(self) -> Iterable[Event]:
        """What is there at the beginning."""
        for user in range(self.users):
            yield Event(self.users_topic, user_json(f"u{user}", f"Ada {user}"), FIRST_MS + user)
        for number in range(1, self.accounts):
            account = account_json(f"u{number % self.users}", "savings", number)
            yield Event(self.accounts_topic, account, FIRST_MS + number)
        yield Event(self.accounts_topic, account_json("u0", self.mark, 0), FIRST_MS + self.accounts)

    def event(self, number: int) -> Event:
        """A new account of one of the first users; its type is its number."""
        return Event(self.accounts_topic, account_json(f"u{row_of(number, self.rows)}", f"n{number}", number))


@dataclass(frozen=True)
class Typed:
    """Users, and accounts of a few types whose balances grow: the largest of a type tells how far it was counted."""

    users_topic: str
    accounts_topic: str
    users: int
    accounts: int
    mark: int = -1
    """The last balance of those at the beginning."""
    rows: int = len(ACCOUNT_TYPES)

    def events(self) -> Iterable[Event]:
        """What is there at the beginning, with balances below zero."""
        for user in range(self.users):
            yield Event(self.users_topic, user_json(f"u{user}", f"Ada {user}"), FIRST_MS + user)
        for number in range(-self.accounts, 0):
            yield self.event(number)

    def event(self, number: int) -> Event:
        """A new account with its number as the balance."""
        user, kind = f"u{row_of(number, self.users)}", ACCOUNT_TYPES[number % self.rows]
        return Event(self.accounts_topic, account_text(user, kind, f"{number}.0"))


@dataclass(frozen=True)
class Trades:
    """Ten quotes, then a trade, of a few symbols: users are quotes, accounts are trades, and keys are symbols.

    What happened up to 5 ms earlier comes later. A trade's balance is its number.
    """

    users_topic: str
    accounts_topic: str
    users: int
    accounts: int
    mark: int = -1
    """The last trade of those at the beginning."""
    rows: int = 1
    """The newest is looked for."""

    def events(self) -> Iterable[Event]:
        """What is there at the beginning, with numbers below zero."""
        return (self.event(number) for number in range(-self.accounts * EVENTS_PER_TRADE, 0))

    def event(self, number: int) -> Event:
        """A quote, or a trade with its number as the balance."""
        late_ms = number * _STRIDE % _JITTER_MS
        trade, place = divmod(number, EVENTS_PER_TRADE)
        if place < QUOTES_PER_TRADE:
            return Event(self.users_topic, user_json(_symbol(number), f"q{number}"), late_ms=late_ms)
        return Event(self.accounts_topic, account_text(_symbol(trade), "buy", f"{trade}.0"), late_ms=late_ms)


def _symbol(number: int) -> str:
    return f"s{row_of(number, _SYMBOLS)}"


Load = Present | Typed | Trades


def row_of(number: int, rows: int = WINDOW) -> int:
    """Which of the changing rows the event of that number changes."""
    return number * _STRIDE % rows


def shown_at(seen: Iterable[tuple[str | float | None, int]], first: int, rows: int = WINDOW) -> dict[int, int]:
    """When each event from a number on was shown, or a newer one in its place; `seen` is in the order of time."""
    times: dict[int, int] = {}
    for value, at in seen:
        number = _number(value)
        while number >= first and number not in times:
            times[number] = at
            number -= rows
    return times


def _number(value: str | float | None) -> int:
    """Of the event that is shown; below zero where it is none."""
    if isinstance(value, str):
        return int(value[1:]) if value[:1] == "n" and value[1:].isdigit() else -1
    return -1 if value is None else int(value)
