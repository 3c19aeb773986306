"""B38: tables by key over a real broker and real Spark, built and followed."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from itertools import count
from pathlib import Path

import boards
import debezium
import parts
import pytest
from boards import FIRST_MS, events, with_suffix
from harness import Bench, Event, code_generated, followed
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from liveboard.contract.board import Board

pytestmark = pytest.mark.integration
_runs = count(1)


def fresh(kafka: str, board: Board, partitions: int = 1) -> Bench:
    """A bench on new topics."""
    bench = Bench(kafka, with_suffix(board, f"by-key-{next(_runs)}"))
    bench.create_topics(partitions)
    return bench


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("part", parts.parts(boards.EVERY_JOIN), ids=parts.named)
@given(data=st.data())
@settings(max_examples=1)
def test_b38_every_join_follows_tables_by_key(
    kafka: str, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, part: Board, data: st.DataObject
) -> None:
    sides = ["users"] if "asof_join" in part.joins else ["accounts", "users"]
    board = boards.by_key(parts.remembering(data, [1, 2, 5, 100], part), *sides)
    # And one that is in no join.
    board = replace(board, sources={**board.sources, **boards.STOCK.sources})
    partitions = parts.chosen(data, [1, 2, 3, 4], parts.named(part))
    bench = fresh(kafka, board, partitions)
    happened = data.draw(events(bench.board, partitions, most=120))
    split = data.draw(st.integers(0, len(happened)))
    bench.produce(happened[:split])
    place = tmp_path_factory.mktemp("by-key") / bench.generation
    with code_generated(spark, "left_join" in part.joins), closing(bench), followed(spark, bench, place):
        bench.produce(happened[split:])
        bench.expect_oracle()


@pytest.mark.timeout(1200)
@given(changes=debezium.changes("people", 2, most=60).filter(boards.varied))
@settings(max_examples=1)
def test_b38_a_database_is_built_and_followed(
    kafka: str, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, changes: list[Event]
) -> None:
    bench = fresh(kafka, debezium.BOARD, 2)
    visits = [Event("visits", b'{"person":%d,"page":"p"}' % (n % 6), FIRST_MS + n, n % 2) for n in range(20)]
    bench.produce([*changes[: len(changes) // 2], *visits[:10]])
    with closing(bench), followed(spark, bench, tmp_path_factory.mktemp("database") / bench.generation):
        bench.produce([*visits[10:], *changes[len(changes) // 2 :]])
        bench.expect_oracle()


def test_b33_b38_rows_of_forgotten_records_follow_the_row_of_their_key(
    kafka: str, spark: SparkSession, checkpoint: Path
) -> None:
    """Of three accounts one is remembered. The user's row changes all of them, and its removal takes them away."""
    joins = {name: replace(join, history=1) for name, join in boards.EVERY_JOIN.joins.items()}
    bench = fresh(kafka, boards.by_key(replace(boards.EVERY_JOIN, joins=joins), "users"))

    def account(number: int) -> Event:
        return Event("accounts", b'{"userId":"u","balance":%d}' % number, FIRST_MS + 10 * number)

    def user(at: int, name: str | None) -> Event:
        value = None if name is None else json.dumps({"userId": "u", "name": name}).encode()
        return Event("users", value, FIRST_MS + at, key=b"u")

    bench.produce([account(1), account(2), user(15, "Ada")])
    with closing(bench), followed(spark, bench, checkpoint):
        for event in (account(3), user(5, "Grace"), user(25, None), user(12, "Edith"), user(31, None)):
            bench.produce([event])
            bench.expect_oracle()
        assert bench.table("other_inner") == {}
        assert [row[:5] for row in bench.table("other_left").values()] == [
            ("u", None, n, None, None) for n in (1, 2, 3)
        ]
