"""Both forms of every join without Kafka: Spark answers a list of records, the oracle says what the tables must be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product
from random import Random

import boards
import parts
import pytest
from boards import FIRST_MS
from forms import answer, arrived, check, check_both_forms_of, entries_of, plan_of, repaired, tables
from harness import Event, code_generated
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from liveboard.contract.board import Board, History
from liveboard.contract.joins import JOIN_KINDS
from liveboard.pipeline.history import apart, flagged, rows
from liveboard.pipeline.joins import KINDS
from liveboard.pipeline.plan import Plan

pytestmark = pytest.mark.integration


@given(data=st.data())
@settings(max_examples=1)
def test_b37_nested_documents_are_read_by_path(spark: SparkSession, data: st.DataObject) -> None:
    plan = plan_of(boards.SHOP)
    records = arrived(plan.board, data.draw(boards.events(plan.board, 2, most=120)))
    found = entries_of(spark, plan.board, records)
    check(plan, records, rows(flagged(apart(found)), plan, own_rows=True).collect())


PARTS = parts.parts(boards.EVERY_JOIN)


@pytest.mark.parametrize("part", PARTS, ids=parts.named)
@given(data=st.data())
@settings(max_examples=1)
def test_b11_both_forms_give_the_same_rows(spark: SparkSession, part: Board, data: st.DataObject) -> None:
    check_both_forms(spark, plan_of(parts.remembering(data, [1, 2, "all"], part)), data)


_BY_KEY = {"left": ["users"], "right": ["accounts"], "both": ["users", "accounts"]}


@pytest.mark.parametrize("part", PARTS, ids=parts.named)
@pytest.mark.parametrize("sides", _BY_KEY)
@given(data=st.data())
@settings(max_examples=1)
def test_b38_both_forms_give_the_rows_of_tables_by_key(
    spark: SparkSession, part: Board, data: st.DataObject, sides: str
) -> None:
    """Every kind of join, with a table by key on either side and on both; the boards have them both ways round."""
    board = parts.remembering(data, [1, 2, 5, 100, "all"], part, sides)
    check_both_forms(spark, plan_of(boards.by_key(board, *_BY_KEY[sides])), data)


@given(data=st.data())
@settings(max_examples=2)
def test_b38_a_table_by_key_may_be_in_no_join_and_have_a_key_of_several_columns(
    spark: SparkSession, data: st.DataObject
) -> None:
    check_both_forms(spark, plan_of(boards.STOCK), data)


@pytest.mark.parametrize("how", JOIN_KINDS)
def test_b32_a_long_history_is_sorted_in_more_parts_not_in_longer_ones(spark: SparkSession, how: str) -> None:
    """What a part holds must fit into memory: with 5,000,000 records in a few parts, Java did nothing but make room."""
    plan = plan_of(boards.one_join(how))
    found = flagged(apart(entries_of(spark, plan.board, arrived(plan.board, [user(1), account(2)]))))
    for records in (3_000_000, 30_000_000):
        changes = rows(found, plan, own_rows=True, records=records)
        sizes = changes._jdf.queryExecution().toRdd().getNumPartitions()
        assert records / sizes < 100_000


def check_both_forms(spark: SparkSession, plan: Plan, data: st.DataObject) -> None:
    """Compares what random records lead to with the oracle."""
    name = parts.named(plan.board)
    partitions = parts.chosen(data, [1, 2, 3, 4], name)
    records = arrived(plan.board, data.draw(boards.events(plan.board, partitions, most=120)))
    with code_generated(spark, parts.chosen(data, [False, True], name)):
        check_both_forms_of(spark, plan, records)


def user(at: int, key: str | None = "u") -> Event:
    """A record of users at a time."""
    return Event("users", (f'{{"userId":"{key}"}}' if key else "{}").encode(), FIRST_MS + at)


def account(at: int, key: str | None = "u") -> Event:
    """A record of accounts at a time."""
    return replace(user(at, key), source="accounts")


Make = Callable[..., Event]
_SOURCES: dict[str, tuple[Make, Make]] = {"left": (user, account), "inner": (user, account), "asof": (account, user)}


@pytest.mark.parametrize("how", JOIN_KINDS)
def test_b8_b9_b10_what_matches_nothing(spark: SparkSession, how: str) -> None:
    left, right = _SOURCES[how]
    plan = plan_of(boards.one_join(how))
    records = arrived(plan.board, [left(5, None), right(5, None), left(5, "other"), right(6, "another")])
    found = entries_of(spark, plan.board, records)
    kept = set() if how == "inner" else {"0-0", "0-2"}
    for written in (rows(flagged(apart(found)), plan, own_rows=False).collect(), answer(found, plan).changes):
        assert tables(plan, written)[how].keys() == kept


# Of each side one record of a key is remembered. The last of these records is answered with the rows of these, by their
# numbers, and asks or does not.
_LAST: dict[str, list[tuple[Callable[[Make, Make], list[Event]], set[tuple[int, ...]], bool]]] = {
    "left": [
        (lambda left, right: [left(1), left(2), right(3)], {(1,)}, True),
        (lambda left, right: [left(1), right(2), right(3)], {(0,)}, False),
        (lambda left, right: [right(3), left(1), right(2)], set(), False),
    ],
    "inner": [
        (lambda left, right: [left(1), right(2)], {(0, 1)}, False),
        (lambda left, right: [left(1), left(2), right(3)], {(1, 2)}, True),
        (lambda left, right: [right(1), right(2), left(3)], {(2, 1)}, True),
    ],
    "asof": [
        (lambda left, right: [right(1), left(2)], {(1,)}, False),
        (lambda left, right: [right(1), right(5), left(4)], set(), True),
        (lambda left, right: [left(4), right(1)], {(0,)}, False),
        (lambda left, right: [left(3), left(4), right(5)], set(), False),
        (lambda left, right: [left(3), left(4), right(4)], {(1,)}, True),
        (lambda left, right: [left(4), right(5), right(1)], set(), True),
    ],
}


@pytest.mark.parametrize("how", JOIN_KINDS)
def test_b33_an_answer_that_may_lack_rows_asks(spark: SparkSession, how: str) -> None:
    plan = plan_of(boards.one_join(how, history=1))
    events: list[Event] = []
    expected: dict[int, tuple[set[str], bool]] = {}
    for number, (make, answered_with, asks) in enumerate(_LAST[how]):
        left, right = (partial(source, key=f"u{number}") for source in _SOURCES[how])
        keys = {":".join(f"0-{len(events) + each}" for each in row) for row in answered_with}
        events += make(left, right)
        expected[len(events) - 1] = (keys, asks)
    answered = answer(entries_of(spark, plan.board, arrived(plan.board, events)), plan)
    found = {
        last: (
            {c["key"] for c in answered.changes if c["step"] == last and c["table"] == how},
            any(ask["step"] == last for ask in answered.asks),
        )
        for last in expected
    }
    assert found == expected


# None is the default. Of inner joins fewer: they have a row for every pair.
_DEPTHS: dict[str, list[History | None]] = {
    "left": [1, 2, 5, None, "all"],
    "inner": [2, None],
    "asof": [1, 2, 5, None, "all"],
}


@pytest.mark.parametrize("how", JOIN_KINDS)
def test_b33_every_kind_of_join_has_more_records_of_a_key_than_it_remembers(spark: SparkSession, how: str) -> None:
    """Records of both sides in turn, in the order of their times; then late ones, of the right side twice as many."""
    one, depths = boards.one_join(how), _DEPTHS[how]
    join = one.joins[how]
    joins = {f"{how}_{depth}": replace(join, name=f"{how}_{depth}", history=depth) for depth in depths}
    plan = plan_of(replace(one, joins=joins))
    newest = KINDS[join.how].usual_history + 4
    random = Random(how)
    late = [0, 0, 0, *(random.randrange(newest) for _ in range(21))]
    times = [*(at for at in range(newest) for _ in range(2)), *late, newest, newest]
    sides = [*[join.left, join.right] * newest, *[join.right, join.right, join.left] * 8, join.left, join.right]
    events = [
        Event(source, b'{"userId":"u","age":%d,"balance":%d}' % (number, number), FIRST_MS + at)
        for number, (at, source) in enumerate(zip(times, sides, strict=True))
    ]
    records = arrived(plan.board, events)
    found = entries_of(spark, plan.board, records)
    answered = answer(found, plan)
    # Both sides miss what is forgotten of the other one, apart from those of a left join.
    asking = {tuple(ask["key"].split()[:2]) for ask in answered.asks}
    bounded = [str(memory) for memory, depth in enumerate(depths) if depth != "all"]
    assert asking == set(product(bounded, ["right"] if how == "left" else ["left", "right"]))
    check(plan, records, [*answered.changes, *repaired(spark, found, plan, answered.asks)])


def test_b33_a_repair_that_is_made_again_writes_as_of_rows_that_belong_to_another_by_then(spark: SparkSession) -> None:
    plan = plan_of(boards.one_join("asof", history=2))
    events = [account(1), account(6), account(10), user(5), user(7), account(20), account(30)]
    records = arrived(plan.board, events)
    found = entries_of(spark, plan.board, records)
    answered = answer(found, plan)
    assert [ask["step"] for ask in answered.asks] == [3]
    # The first repair has read the accounts further than the stream, and not yet the user that the stream answered.
    at_first = entries_of(spark, plan.board, [record for record in records if record.offset != 4])
    written = [*answered.changes, *repaired(spark, at_first, plan, answered.asks)]
    assert {row["key"] for row in written[len(answered.changes) :]} == {"0-1", "0-2"}
    # Which rows those are is known by how far it had read. The stream has written the others by itself, perhaps from
    # records that this repair has not read either.
    so_far = {source.topic: {"0": 5} for source in plan.board.sources.values()}
    again = repaired(spark, found, plan, answered.asks, so_far)
    assert {row["key"] for row in again} == {"0-0", "0-1", "0-2"}
    check(plan, records, [*written, *again])
