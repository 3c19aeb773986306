"""The arithmetic of the measurements: what counts as shown, and what becomes of rounds."""

from __future__ import annotations

import json
from collections import Counter
from importlib import import_module
from pathlib import Path

import comparison
import pytest
import report
from arrivals import number_in
from keys import Found, figures, shapes
from load import Keyed
from measure import SUITES
from peer import points
from peer.crowd import different, spread
from peer.events import Past, Typed, row_of, shown_at
from peer.latency import without_longest_stop
from report import Figure, Target, percentile
from stage import QUICK, Sizes, Suite

_BENCH = Path(report.__file__).parent


def test_an_event_is_shown_when_its_row_shows_it_or_a_newer_one() -> None:
    seen = [("ready", 5), ("n10", 20), ("n14", 30), (None, 31), ("n25", 40)]
    assert row_of(10, 5) == row_of(15, 5) == row_of(25, 5)
    assert shown_at(seen, first=10, rows=5) == {10: 20, 14: 30, 25: 40, 20: 40, 15: 40}


def test_events_before_the_first_are_not_looked_for() -> None:
    assert shown_at([("n25", 40)], first=20, rows=5) == {25: 40, 20: 40}


def test_the_largest_of_a_type_tells_how_far_its_accounts_were_counted() -> None:
    load = Typed("users", "accounts", 20, 100)
    kinds = [json.loads(load.event(number).value)["accountType"] for number in range(40)]
    assert kinds == kinds[: load.rows] * 8
    balances = [json.loads(event.value).get("balance") for event in load.events()]
    assert max(balance for balance in balances if balance is not None) == load.mark
    assert shown_at([(-1.0, 5), (11.0, 20), (21.0, 30)], first=10, rows=load.rows) == {11: 20, 16: 30, 21: 30}


def test_a_group_shows_the_event_with_the_largest_balance_whatever_the_sum() -> None:
    assert number_in(b'["savings",2,7.125,5.125,"2026-01-31T09:30:00.000000Z","2026-01-31T09:30:00.000000Z"]') == 5
    assert number_in(b'["u7","Ada 7","7@acme.example",23,"savings",12.125,"2026-01-31T09:30:00.000000Z"]') == 12
    assert number_in(b'["new9","n9","n@acme.example",20,null,null,"2026-01-31T09:30:00.000000Z"]') == 9
    assert number_in(b'{"userId":"u7","accountType":"savings","balance":3.125}') == 3
    assert number_in(b'["u7","Ada 7","7@acme.example",23,"savings",12.25,"2026-01-31T09:30:00.000000Z"]') is None


def test_both_deephavens_stand_beside_one_figure_of_liveboard() -> None:
    row = {"unit": "ms", "liveboard": 4.0, "rounds": {"liveboard": [3.0, 4.0, 9.0]}}
    runs = {
        "latency": {
            "date": "2026-11-18T16:19:06+00:00",
            "machine": {"commit": "4b2b433"},
            "results": [
                {**row, "measure": "p50, against Deephaven, showcase", "deephaven": 800.0, "ratio": 0.005},
                {
                    **row,
                    "measure": "p50, against Deephaven, tuned",
                    "deephaven": 2.0,
                    "ratio": 2.0,
                    "target": "ratio ≤ 1",
                    "met": False,
                },
                {
                    "unit": "ms",
                    "measure": "not kept up with, against Deephaven, tuned",
                    "deephaven": 5.0,
                    "target": "ratio ≤ 1",
                    "met": None,
                },
                {"measure": "alone", "unit": "s", "liveboard": 11.0, "target": "ratio ≤ 1", "met": None},
            ],
        }
    }
    assert comparison.text(runs).splitlines()[-7:] == [
        "2026-11-18, commit 4b2b433, 3 rounds.",
        "",
        "| what | unit | liveboard | Deephaven, showcase | times | Deephaven, tuned | times | wanted |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
        "| p50 | ms | 4 (3 to 9) | 800 | 0.005 | 2 | 2 | ratio ≤ 1: missed |",
        "| not kept up with | ms |  |  |  | 5 |  | ratio ≤ 1: missed |",
        "| alone | s | 11 |  |  |  |  |  |",
    ]


def test_the_page_of_the_comparison_has_what_was_measured_last() -> None:
    assert (_BENCH.parent / "docs/comparison.md").read_text() == comparison.text(report.load(_BENCH / "results.json"))


def test_percentiles_are_values_that_were_measured() -> None:
    values = [float(value) for value in range(1, 1001)]
    assert [percentile(values, percent) for percent in (0, 50, 99, 99.9, 100)] == [1, 500, 990, 999, 1000]


@pytest.mark.parametrize(("worst", "left"), [(50, 60), (3, 77), (99, 79)])
def test_the_longest_stop_is_left_out_with_the_seconds_around_it(worst: int, left: int) -> None:
    latencies = [float(number == worst) for number in range(100)]
    assert without_longest_stop(latencies, rate=10) == [0.0] * left


@pytest.mark.parametrize(("viewers", "sizes"), [(0, []), (19, [19]), (90, [45, 45]), (120, [40, 40, 40])])
def test_a_crowd_is_spread_evenly_and_every_viewer_has_the_window_that_it_had_in_one_process(
    viewers: int, sizes: list[int]
) -> None:
    windows = different(10_000)
    shares = spread(windows, viewers)
    assert [len(share) for share in shares] == sizes
    watched = Counter(json.dumps(window) for share in shares for window in share)
    assert watched == Counter(json.dumps(windows[number % len(windows)]) for number in range(viewers))


def test_rounds_become_medians_and_their_ratio_is_held_against_the_target() -> None:
    rounds = [
        [Figure("m", "ms", ours, theirs, Target(0.5, of_ratio=True))]
        for ours, theirs in ((1.0, 4.0), (9.0, 4.0), (2.0, 3.0))
    ]
    (row,) = report.rows(rounds)
    assert (row["liveboard"], row["deephaven"], row["ratio"], row["met"]) == (2.0, 4.0, 0.5, True)
    assert row["target"] == "ratio ≤ 0.5"
    assert row["rounds"] == {"liveboard": [1.0, 9.0, 2.0], "deephaven": [4.0, 4.0, 3.0]}


def test_what_could_not_be_measured_has_no_ratio() -> None:
    (row,) = report.rows([[Figure("m", "ms", 1.0, None, Target(0.5, of_ratio=True))]])
    assert (row.keys() & {"deephaven", "ratio", "rounds"}, row["met"]) == (set(), None)


def test_a_figure_of_liveboard_alone_is_held_against_its_own_target() -> None:
    alone = [
        Figure("rate", "rows/s", 533_215.4, target=Target(400_000, at_least=True)),
        Figure("lag", "ms", 10.12345, target=Target(10)),
        Figure("none", "ms", 1.0),
    ]
    assert report.rows([alone]) == [
        {"measure": "rate", "unit": "rows/s", "liveboard": 533_215, "target": "≥ 400,000", "met": True},
        {"measure": "lag", "unit": "ms", "liveboard": 10.12, "target": "≤ 10", "met": False},
        {"measure": "none", "unit": "ms", "liveboard": 1.0},
    ]


def test_only_what_was_measured_is_replaced(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    first, second = ([{"measure": "m", "unit": "s", "liveboard": value}] for value in (1.0, 2.0))
    report.keep(file, "a", {"date": "one"}, first)
    report.keep(file, "b", {"date": "one"}, first)
    report.keep(file, "b", {"date": "two", "sizes": {"rows": 1}}, second)
    assert report.load(file) == {
        "a": {"date": "one", "results": first},
        "b": {"date": "two", "sizes": {"rows": 1}, "results": second},
    }


@pytest.mark.parametrize("name", SUITES)
def test_the_kept_figures_are_of_the_suites_measures_and_can_be_shown(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    suite: Suite = import_module(name).SUITE
    kept = report.load(_BENCH / suite.file)
    assert kept.keys() <= suite.measures.keys()
    report.show((row for run in kept.values() for row in run["results"]), suite.title)
    assert "targets met" in capsys.readouterr().out
    assert all(run.keys() >= {"date", "command", "load_before", "sizes"} for run in kept.values())


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


@pytest.mark.parametrize(("keys", "per_key"), [(1, 1_000), (3, 100), (300, 3)])
def test_the_expected_rows_under_few_and_many_keys_are_those_of_the_events(keys: int, per_key: int) -> None:
    load = Keyed("users", "accounts", keys, per_key, accounts_come=True)
    events = list(load.history())
    users, accounts = (
        Counter(json.loads(event.value)["userId"] for event in events if event.topic == topic)
        for topic in ("users", "accounts")
    )
    assert users + accounts == Counter({f"u{key}": per_key for key in range(keys)})
    assert load.rows("left") == load.rows("asof") == users.total()
    assert load.rows("inner") == sum(users[key] * accounts[key] for key in users)


@pytest.mark.parametrize("accounts_come", [True, False])
def test_the_users_among_the_events_are_the_ones_to_look_for(accounts_come: bool) -> None:
    load = Keyed("users", "accounts", 3, 100, accounts_come)
    users = [number for number in range(1_000) if load.event(number).topic == "users"]
    assert [number for number in range(1_000) if load.shows(number, "left")] == users
    assert len(users) == (990 if accounts_come else 1_000)


@pytest.mark.parametrize("sizes", [Sizes(), QUICK])
def test_few_keys_are_held_against_many_and_long_histories_against_short_ones(sizes: Sizes) -> None:
    rates, labels = (200, 1_000), ("p50", "p99")
    found = {
        shape: Found(shape.keys, {(rate, label): shape.per_key for rate in rates for label in labels})
        for shape in shapes(sizes)
    }
    value = {figure.measure: (figure.liveboard, str(figure.target)) for figure in figures("asof", sizes, found)}
    few, many = sizes.keys[1], sizes.keys[-1]
    per_key = sizes.keys_records // few
    assert value[f"keys, build, {few:,} keys / {many:,} keys, as-of"] == (few / many, "≤ 2")
    against = per_key / (sizes.keys_records // many)
    assert value[f"keys, p50 at 200/s, {few:,} keys of {per_key:,} / {many:,} keys, as-of"] == (against, "≤ 2")
    growth = f"{few:,} keys of {per_key:,} / {few:,} keys of {sizes.keys_short:,}, as-of"
    assert value[f"keys, p50 at 1,000/s, {growth}"] == (per_key / sizes.keys_short, "≤ 2")


def test_the_plot_of_the_first_minute_has_every_step_of_both_systems() -> None:
    rows = [
        {"measure": f"first minute, {step}, {label}, against Deephaven, tuned", "liveboard": ours, "deephaven": theirs}
        for step, label, ours, theirs in (("0 to 5 s", "p50", 1.0, 2.0), ("5 to 10 s", "p50", 3.0, 4.0))
    ]
    rows.append({"measure": "first minute, the page answers, against Deephaven, tuned", "liveboard": 5.0})
    assert points.first_minute({"results": rows}) == {
        "liveboard": {"p50": {2.5: 1.0, 7.5: 3.0}},
        "Deephaven, tuned": {"p50": {2.5: 2.0, 7.5: 4.0}},
    }
    run = report.load(_BENCH / "results.json")["first-minute"]
    kept = [len(line) for lines in points.first_minute(run).values() for line in lines.values()]
    assert kept == [run["sizes"]["first_s"] // 5] * 4


def test_the_plot_of_keys_has_all_that_share_the_same_number_of_records_and_no_ratios() -> None:
    sizes = Sizes()
    found = {
        shape: Found(shape.keys, {(rate, label): shape.per_key for rate in (200, 1_000) for label in ("p50", "p99")})
        for shape in shapes(sizes)
    }
    rows = report.rows([figures("asof", sizes, found)])
    latency = {keys: sizes.keys_records // keys for keys in sizes.keys}
    assert points.keys({"sizes": {"keys_records": sizes.keys_records}, "results": rows}) == {
        points.BUILD: {"as-of": {"build": {keys: keys for keys in sizes.keys}}},
        "ms to the changelog, 200 events/s": {"as-of": {"p50": latency, "p99": latency}},
        "ms to the changelog, 1,000 events/s": {"as-of": {"p50": latency, "p99": latency}},
    }
