"""B40, B42: a whole pipeline is killed, with Spark, while rows cross a limit and change their groups."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from random import Random

import pytest
from alerting import Told
from harness import Bench, Event, emptied, until
from live import Running, get, serving
from process import Pipeline

from liveboard.contract.board import Aggregate, Alert, Board, Source

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1200)]

ROWS = 2_000
LIMIT = 18
BOARD = Board(
    sources={
        "users": Source(
            name="users",
            topic="users",
            table="users_ui",
            schema="userId string, age bigint",
            mode="upsert",
            key=("userId",),
        )
    },
    aggregates={
        "by_age": Aggregate(
            name="by_age", source="users", by=("age",), measures={"users": "count(*)", "last": "max(userId)"}
        )
    },
    alerts={"minor": Alert(name="minor", table="users_ui", when=(("age", "<", LIMIT),))},
)


def test_b42_each_crossing_is_told_and_counted_once_when_all_is_killed(kafka: str, tmp_path: Path) -> None:
    with emptied(kafka), closing(Bench(kafka, BOARD, "g1")) as bench:
        bench.admin.create(["users"], partitions=2)
        random, ages = Random(42), dict.fromkeys(range(ROWS), 40)
        expected: dict[str, list[str]] = {}

        def wave() -> int:
            """Every row gets another age, or goes; returns how many records there must be of alerts in the end."""
            for user in ages:
                before, ages[user] = ages[user], random.choice((10, 17, 18, 40, 99))
                if (before < LIMIT) != (ages[user] < LIMIT):
                    expected.setdefault(f'="u{user}"', []).append("raised" if ages[user] < LIMIT else "cleared")
            bench.produce(_event(user, age) for user, age in ages.items())
            return sum(map(len, expected.values()))

        with closing(Pipeline(kafka, BOARD, tmp_path)) as pipeline:
            pipeline.wait_until_live()
            told = Told(kafka)
            with closing(told), serving(kafka) as one, serving(kafka) as other:
                for is_killed in (False, True, False):
                    before, count = len(told.records), wave()
                    if is_killed:
                        # While it writes: some of this wave is told already, some is not.
                        some = before + (count - before) // 4
                        until(lambda some=some: len(told.look()) > some, "some alerts")  # type: ignore[misc]
                        pipeline.kill("")
                        pipeline.start()
                    until(lambda count=count: len(told.look()) >= count, "the alerts of a wave")  # type: ignore[misc]
                    assert told.states() == expected
                raised = {f'="u{user}"' for user, age in ages.items() if age < LIMIT}
                for server in (one, other):
                    until(lambda server=server: _shown(server) == raised, "what is raised")  # type: ignore[misc]
                assert told.states() == expected
            bench.expect_oracle()
            pipeline.stop()


def _event(user: int, age: int) -> Event:
    """A user of that age; the oldest have left, which is told by a record without a value."""
    partition, key = user % 2, f"u{user}".encode()
    if age == 99:
        return Event("users", None, 0, partition, key)
    return Event("users", json.dumps({"userId": f"u{user}", "age": age}).encode(), 0, partition, key)


def _shown(server: Running) -> set[str]:
    code, answer = get(server, "/api/tables/alerts_ui?size=10000")
    return {row[2] for row in answer["rows"]} if code == 200 else set()
