"""B40, B42: pipeline, Spark and two servers are killed while rows cross a limit to and fro and change their groups."""

from __future__ import annotations

import json
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from random import Random

import pytest
from alerting import Told
from harness import Bench, Event, emptied, until
from live import KEY
from process import Pipeline, board_toml
from replicas import Replica, answer

from liveboard.contract.board import Aggregate, Alert, Board, Source

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1200)]

ROWS = 10_000
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

        servers = [Replica(kafka, tmp_path, board_toml(BOARD)) for _ in range(2)]
        told = Told(kafka)
        with closing(Pipeline(kafka, BOARD, tmp_path)) as pipeline, closing(told), ExitStack() as running:
            pipeline.wait_until_live()
            for server in servers:
                server.start()
                running.callback(server.kill)
            # All of the pipeline with one server, then nothing, then Spark alone with the other server.
            for victims in (("", servers[0]), None, ("java", servers[1])):
                before, count = len(told.records), wave()
                if victims:
                    what, server = victims
                    # While it writes: some of this wave is told already, some is not.
                    some = before + (count - before) // 4
                    until(lambda some=some: len(told.look()) > some, "some alerts")  # type: ignore[misc]
                    server.kill()
                    pipeline.kill(what)
                    if not pipeline.is_running():
                        pipeline.start()
                    server.start()
                until(lambda count=count: len(told.look()) >= count, "the alerts of a wave")  # type: ignore[misc]
                assert told.states() == expected
            raised = {f'="u{user}"' for user, age in ages.items() if age < LIMIT}
            for server in servers:
                until(partial(_shows, server, raised), "what is raised")
            assert told.states() == expected
            bench.expect_oracle()
            pipeline.stop()


def _event(user: int, age: int) -> Event:
    """A user of that age; the oldest have left, which is told by a record without a value."""
    partition, key = user % 2, f"u{user}".encode()
    if age == 99:
        return Event("users", None, 0, partition, key)
    return Event("users", json.dumps({"userId": f"u{user}", "age": age}).encode(), 0, partition, key)


def _shows(server: Replica, raised: set[str]) -> bool:
    shown = answer(f"{server.url}/api/tables/alerts_ui?size={ROWS}", KEY)
    return bool(shown) and {row[2] for row in json.loads(shown or "")["rows"]} == raised
