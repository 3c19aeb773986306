"""B1 to B11: every table is what the oracle says, over a real broker and real Spark."""

from __future__ import annotations

import json
from contextlib import closing
from itertools import count
from pathlib import Path
from random import Random

import boards
import pytest
from boards import FIRST_MS, events, with_suffix
from harness import Bench, Event, followed
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from liveboard.config import Board

pytestmark = pytest.mark.integration
_runs = count(1)


def fresh(kafka: str, board: Board, partitions: int = 1) -> Bench:
    """A bench on new topics."""
    bench = Bench(kafka, with_suffix(board, f"content-{next(_runs)}"))
    bench.create_topics(partitions)
    return bench


def check(kafka: str, spark: SparkSession, tmp: Path, board: Board, partitions: int, data: st.DataObject) -> None:
    """History before the build, then more while it follows."""
    bench = fresh(kafka, board, partitions)
    happened = data.draw(events(bench.board, partitions, most=120))
    split = data.draw(st.integers(0, len(happened)))
    bench.produce(happened[:split])
    with closing(bench), followed(spark, bench, tmp / bench.generation):
        bench.produce(happened[split:])
        bench.expect_oracle()


@given(data=st.data(), partitions=st.integers(1, 4))
@settings(max_examples=12)
def test_b11_every_join_is_a_function_of_the_topics(
    kafka: str,
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    data: st.DataObject,
    partitions: int,
) -> None:
    check(kafka, spark, tmp_path_factory.mktemp("joins"), boards.EVERY_JOIN, partitions, data)


@given(data=st.data(), partitions=st.integers(1, 3))
@settings(max_examples=8)
def test_b2_another_board_needs_no_code(
    kafka: str,
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    data: st.DataObject,
    partitions: int,
) -> None:
    check(kafka, spark, tmp_path_factory.mktemp("board"), boards.SHIPPING, partitions, data)


def test_b5_every_kind_of_bad_record_is_told_apart(kafka: str, spark: SparkSession, checkpoint: Path) -> None:
    bench = fresh(kafka, boards.default_board())
    wrong = {
        b'{"userId":"u","age":"x"}': 'age: expected bigint, found "x" (string)',
        b'{"userId":"u","age":"42"}': 'age: expected bigint, found "42" (string)',
        b'{"userId":"u","age":3.7}': "age: expected bigint, found 3.7 (decimal)",
        b'{"userId":"u","age":99999999999999999999}': ("age: expected bigint, found 99999999999999999999 (decimal)"),
        b'{"userId":"u","age":NaN}': 'age: expected bigint, found "NaN" (double)',
        b'{"userId":"u","age":1e400}': 'age: expected bigint, found "Infinity" (double)',
        b'{"userId":7}': "userId: expected string, found 7 (bigint)",
        b'{"userId":"u","name":{"first":"A"}}': 'name: expected string, found {"first":"A"} (object)',
        b"[1]": "value: expected a JSON object, found [1]",
        b"": "value: expected a JSON object, found ",
        b'{"userId":"u"} trailing': 'value: expected a JSON object, found {"userId":"u"} trailing',
        b'{"userId":"\xff"}': "value: expected UTF-8 text, found bytes that are not",
        b'{"userId":"u","age":"x","age":2}': "value: expected every field once, found one repeated",
        # Limits of the JSON reader: refused, and nothing else is hurt.
        b'{"x":' + b"1" * 1_500 + b"}": 'value: expected a JSON object, found {"x":' + "1" * 95 + "…",
        b'{"x":' + b"[" * 2_000 + b"]" * 2_000 + b"}": 'value: expected a JSON object, found {"x":' + "[" * 95 + "…",
    }
    events = [Event("users", value, FIRST_MS) for value in wrong]
    good = Event("users", b'{"userId":"good"}', FIRST_MS)
    oversized = Event("accounts", b'{"userId":"' + b"x" * 5_000 + b'"}', FIRST_MS)
    bench.produce([good, *events, good, oversized])
    with closing(bench), followed(spark, bench, checkpoint):
        bench.produce([*events, good])
        bench.expect_rows("users_ui", 3)
        bench.expect_rows("rejects_ui", 2 * len(wrong) + 1)
        topic = bench.board.sources["users"].topic
        rejects = {row[2]: row for row in bench.table("rejects_ui").values() if row[0] == topic}
        assert [rejects[offset][3] for offset in range(1, len(wrong) + 1)] == list(wrong.values())
        assert rejects[1][4] == '{"userId":"u","age":"x"}'
        (oversized_row,) = (row for row in bench.table("rejects_ui").values() if row[0] != topic)
        assert oversized_row[3] == "value: expected at most 2000 bytes, found 5013"


def test_b3_reading_from_the_end_leaves_history_out(kafka: str, spark: SparkSession, checkpoint: Path) -> None:
    bench = fresh(kafka, boards.default_board())
    bench.produce([Event("users", b'{"userId":"old"}', FIRST_MS)])
    with closing(bench), followed(spark, bench, checkpoint, start_from="latest"):
        bench.produce([Event("users", b'{"userId":"new"}', FIRST_MS)])
        bench.expect_rows("users_ui", 1)
        bench.expect_rows("final_ui", 1)
        assert [row[0] for row in bench.table("final_ui").values()] == ["new"]


@pytest.mark.parametrize("how", ["inner", "asof"])
def test_one_answer_per_record_under_a_burst(kafka: str, spark: SparkSession, checkpoint: Path, how: str) -> None:
    """The design rests on it: Real-Time Mode answers every record, however many of a key come at once."""
    bench = fresh(kafka, boards.one_join(how), partitions=2)
    random = Random(how)

    def event(number: int) -> Event:
        value = {"userId": f"u{random.randrange(50)}", "name": f"n{number}", "balance": number}
        enriches = number % 100 == 0
        source = "users" if enriches == (how == "asof") else "accounts"
        document = json.dumps(value).encode()
        return Event(source, document, FIRST_MS + random.randrange(1_000), random.randrange(2))

    with closing(bench), followed(spark, bench, checkpoint):
        bench.produce(event(number) for number in range(50_000))
        bench.expect_oracle()


@pytest.mark.parametrize("how", ["inner", "asof"])
def test_a_salted_hot_key_is_exact(kafka: str, spark: SparkSession, checkpoint: Path, how: str) -> None:
    bench = fresh(kafka, boards.one_join(how, salt=16))
    driving, enriching = ("accounts", "users") if how == "asof" else ("users", "accounts")
    random = Random(how)

    def event(source: str) -> Event:
        return Event(source, b'{"userId":"hot"}', FIRST_MS + random.randrange(1_000))

    bench.produce([event(driving) for _ in range(20_000)] + [event(enriching) for _ in range(3)])
    with closing(bench), followed(spark, bench, checkpoint):
        bench.produce([event(driving) for _ in range(500)] + [event(enriching) for _ in range(2)])
        bench.expect_oracle()
