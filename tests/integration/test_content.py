"""B1 to B11, B37 and B40: every table is what the oracle says, over a real broker and real Spark."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from itertools import count
from pathlib import Path
from random import Random

import boards
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
    bench = Bench(kafka, with_suffix(board, f"content-{next(_runs)}"))
    bench.create_topics(partitions)
    return bench


def check(kafka: str, spark: SparkSession, tmp: Path, board: Board, data: st.DataObject) -> None:
    """History before the build, then more while it follows; joins that remember much, or next to nothing."""
    board = parts.remembering(data, [1, 2, 5, 100, "all"], board)
    partitions = parts.chosen(data, [1, 2, 3, 4], parts.named(board))
    bench = fresh(kafka, board, partitions)
    happened = data.draw(events(bench.board, partitions, most=120))
    split = data.draw(st.integers(0, len(happened)))
    bench.produce(happened[:split])
    with closing(bench), followed(spark, bench, tmp / bench.generation):
        bench.produce(happened[split:])
        bench.expect_oracle()


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("part", parts.parts(boards.EVERY_JOIN), ids=parts.named)
@given(data=st.data())
@settings(max_examples=1)
def test_b11_every_join_is_a_function_of_the_topics(
    kafka: str, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, part: Board, data: st.DataObject
) -> None:
    # Half of the joins with the code that Spark generates for them, as users have it.
    with code_generated(spark, "left_join" in part.joins or "asof_join" in part.joins):
        check(kafka, spark, tmp_path_factory.mktemp("joins"), part, data)


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("part", parts.parts(boards.SHIPPING), ids=parts.named)
@given(data=st.data())
@settings(max_examples=1)
def test_b2_another_board_needs_no_code(
    kafka: str, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, part: Board, data: st.DataObject
) -> None:
    with code_generated(spark, "order_pairs" in part.joins):
        check(kafka, spark, tmp_path_factory.mktemp("board"), part, data)


@pytest.mark.timeout(1200)
@given(data=st.data())
@settings(max_examples=1)
def test_b37_nested_documents_are_read_and_joined(
    kafka: str, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    check(kafka, spark, tmp_path_factory.mktemp("nested"), boards.SHOP, data)


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


@pytest.mark.usefixtures("generated_code")
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
        bench.produce(event(number) for number in range(8_000))
        bench.expect_oracle()


@pytest.mark.usefixtures("generated_code")
def test_b32_a_key_with_millions_of_pairs_is_built_in_the_default_heap(
    kafka: str, spark: SparkSession, checkpoint: Path
) -> None:
    """As one array, these pairs do not fit into the heap."""
    bench = fresh(kafka, boards.one_join("inner"))
    lefts, rights = 950, 2_200
    users = [Event("users", b'{"userId":"hot","age":%d}' % n, FIRST_MS + n) for n in range(lefts)]
    bench.produce([*users, *(Event("accounts", b'{"userId":"hot","balance":%d}' % n, FIRST_MS) for n in range(rights))])
    with closing(bench), followed(spark, bench, checkpoint):
        bench.produce([Event("users", b'{"userId":"hot","age":-1}', FIRST_MS)])
        bench.expect_keys("inner", {f"0-{left}:0-{right}" for left in range(lefts + 1) for right in range(rights)})


# In each case the last events are answered from a memory of one record, or cannot be.
_REACHING_BACK = {
    "left, a new right record of many left ones": [("users", 5), ("users", 6), ("accounts", 9)],
    "left, an old right record": [("users", 5), ("users", 6), ("accounts", 9), ("accounts", 8)],
    "as-of, a left record before all right ones": [("users", 5), ("users", 6), ("accounts", 4)],
    "as-of, a left record between forgotten right ones": [("users", 2), ("users", 5), ("users", 6), ("accounts", 3)],
    "as-of, a right record between forgotten ones": [
        ("users", 2),
        ("users", 6),
        ("users", 7),
        ("accounts", 3),
        ("accounts", 5),
        ("users", 4),
    ],
    "as-of, a right record of the oldest left record's time": [("accounts", 5), ("accounts", 5), ("users", 5)],
    "as-of, a right record before forgotten left ones": [
        ("users", 1),
        ("accounts", 4),
        ("accounts", 5),
        ("accounts", 9),
        ("users", 3),
    ],
    "both late": [("accounts", 8), ("users", 9), ("accounts", 7), ("users", 6), ("accounts", 5), ("users", 5)],
}


@pytest.mark.parametrize("built", [False, True], ids=["following", "built before"])
def test_b33_what_a_memory_of_one_record_cannot_answer_is_repaired(
    kafka: str, spark: SparkSession, checkpoint: Path, built: bool
) -> None:
    """Every case has a key of its own. Its events come one after the other, so that their order is the stream's."""
    joins = {name: replace(join, history=1) for name, join in boards.EVERY_JOIN.joins.items()}
    bench = fresh(kafka, replace(boards.EVERY_JOIN, joins=joins))
    rounds = [
        [
            Event(case[n][0], json.dumps({"userId": key, "age": n, "balance": n}).encode(), FIRST_MS + case[n][1])
            for key, case in _REACHING_BACK.items()
            if n < len(case)
        ]
        for n in range(max(map(len, _REACHING_BACK.values())))
    ]
    before = 2 if built else 0
    bench.produce(event for events in rounds[:before] for event in events)
    with code_generated(spark, built), closing(bench), followed(spark, bench, checkpoint):
        for events in rounds[before:]:
            bench.produce(events)
            tables = bench.expected()
            bench.expect({name: tables[name] for name in ("users_ui", "accounts_ui")})
        bench.expect_oracle()
