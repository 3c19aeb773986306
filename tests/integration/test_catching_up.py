"""When a stream that follows from the beginning has caught up; the test plays the stream."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

import pytest
from boards import one_join
from confluent_kafka import Producer
from harness import until

from liveboard.contract.names import Names
from liveboard.contract.tables import table_columns
from liveboard.kafka.admin import Admin
from liveboard.orchestrator.catching_up import CatchingUp
from liveboard.pipeline.plan import Plan

pytestmark = pytest.mark.integration

NAMES = Names()


def test_it_waits_for_the_own_row_of_every_record_that_was_there(kafka: str) -> None:
    client = {"bootstrap.servers": kafka}
    admin, producer = Admin(client), Producer(client)
    users, accounts = "caught-users", "caught-accounts"
    board = one_join("left")
    topics = {"users": users, "accounts": accounts}
    board = replace(board, sources={n: replace(source, topic=topics[n]) for n, source in board.sources.items()})
    admin.create([users, accounts], partitions=2)
    start = admin.offsets(admin.require([users, accounts]), "earliest")
    plan = Plan(NAMES, "g7000", board, start, client)
    admin.create_generation(NAMES, "g7000", table_columns(board))

    def produce(topic: str, partition: int, value: bytes | None) -> None:
        producer.produce(topic, value, partition=partition)
        assert producer.flush(60) == 0

    def write(table: str, key: str) -> None:
        producer.produce(plan.changelog(table), b"[]", key)
        assert producer.flush(60) == 0

    produce(users, 0, b"{}")
    produce(users, 1, b"not JSON")
    produce(accounts, 1, b"{}")
    # Has no row, and is the last of its partition.
    produce(accounts, 1, None)
    end = admin.offsets(admin.require([users, accounts]), "latest")
    # By a stream that was here before; and by nobody, since it comes too late.
    write("users_ui", "0-0")
    produce(users, 0, b"{}")
    with closing(CatchingUp(plan, end, client, admin)) as catching_up:
        write("accounts_ui", "1-0")
        write("rejects_ui", f"{users}-1-0")
        assert not any(catching_up.is_done() for _ in range(1_000))
        write("users_ui", "0-0")
        until(catching_up.is_done)
