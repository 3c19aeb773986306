"""The arithmetic of the measurements: what counts as shown, and what becomes of rounds."""

from __future__ import annotations

import json
from pathlib import Path

from peer import figures
from peer.events import Past, row_of, shown_at
from peer.figures import Figure, Target, percentile


def test_an_event_is_shown_when_its_row_shows_it_or_a_newer_one() -> None:
    seen = [("ready", 5), ("n10", 20), ("n14", 30), (None, 31), ("n25", 40)]
    assert row_of(10, 5) == row_of(15, 5) == row_of(25, 5)
    assert shown_at(seen, first=10, rows=5) == {10: 20, 14: 30, 25: 40, 20: 40, 15: 40}


def test_events_before_the_first_are_not_looked_for() -> None:
    assert shown_at([("n25", 40)], first=20, rows=5) == {25: 40, 20: 40}


def test_percentiles_are_values_that_were_measured() -> None:
    values = [float(value) for value in range(1, 1001)]
    assert [percentile(values, percent) for percent in (0, 50, 99, 99.9, 100)] == [1, 500, 990, 999, 1000]


def test_rounds_become_medians_and_their_ratio_is_held_against_the_target() -> None:
    rounds = [[Figure("m", "ms", ours, theirs, Target(0.5))] for ours, theirs in ((1.0, 4.0), (9.0, 4.0), (2.0, 3.0))]
    (row,) = figures.rows(rounds)
    assert (row["liveboard"], row["deephaven"], row["ratio"], row["met"]) == (2.0, 4.0, 0.5, True)
    assert row["target"] == "ratio ≤ 0.5"
    assert row["rounds"] == {"liveboard": [1.0, 9.0, 2.0], "deephaven": [4.0, 4.0, 3.0]}


def test_what_could_not_be_measured_has_no_ratio() -> None:
    (row,) = figures.rows([[Figure("m", "ms", 1.0, None, Target(0.5))]])
    assert (row["deephaven"], row["ratio"], row["met"]) == (None, None, None)


def test_only_what_was_measured_is_replaced(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    first = figures.rows([[Figure("a", "s", 1.0, 1.0), Figure("b", "s", 2.0, 1.0)]])
    figures.keep(file, {"date": "one"}, "first", {}, first)
    figures.keep(file, {"date": "two"}, "second", {"load": 1}, figures.rows([[Figure("b", "s", 3.0, 1.0)]]))
    kept = figures.load(file)
    assert {row["measure"]: row["liveboard"] for row in kept["results"]} == {"a": 1.0, "b": 3.0}
    assert (kept["date"], kept["runs"]) == ("two", {"first": {}, "second": {"load": 1}})


def test_the_expected_content_is_that_of_the_events() -> None:
    past = Past("users", "accounts", 20, 500, "last")
    users: dict[str, int] = {}
    accounts: list[tuple[str, int, float]] = []
    for event in past.events():
        fields = json.loads(event.value)
        if event.topic == "users":
            users[fields["userId"]] = event.timestamp_ms
        else:
            accounts.append((fields["userId"], event.timestamp_ms, fields["balance"]))
    newest = {user: balance for user, _, balance in accounts if user in users}
    pairs = [balance for user, _, balance in accounts if user in users]
    enriched = [user for user, at, _ in accounts if users.get(user, at + 1) <= at]
    left, inner, asof = (past.content(how) for how in ("left", "inner", "asof"))
    assert (left.rows, left.matched, left.balance) == (len(users), len(newest), sum(newest.values()))
    assert (inner.rows, inner.matched, inner.balance) == (len(pairs), len(pairs), sum(pairs))
    assert (asof.rows, asof.matched) == (len(accounts), len(enriched))
    assert asof.balance == sum(balance for _, _, balance in accounts)
