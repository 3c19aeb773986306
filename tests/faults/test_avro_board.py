"""B39 on the whole way: schemas that appear while the board runs, a registry that is away, and crashes in between."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from avro_oracle import AvroOracle, encoded, header
from boards import FIRST_MS
from harness import Bench, Event, emptied, until
from process import Pipeline
from registry import TestRegistry

from liveboard.contract.board import Board, Join, Source
from liveboard.contract.names import Names
from liveboard.contract.paths import parse_path
from liveboard.contract.schema import Column
from liveboard.contract.status import BoardStatus, Phase, decode_status

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1200)]

BOARD = Board(
    sources={
        "orders": Source(
            name="orders",
            topic="orders",
            table="orders_ui",
            format="avro",
            columns=(
                Column("userId", "string"),
                Column("amount", "decimal(10,2)"),
                Column("city", "string", parse_path("customer.city")),
            ),
        ),
        "users": Source(name="users", topic="users", table="users_ui", schema="userId string, name string"),
    },
    joins={"final_ui": Join(name="final_ui", left="orders", right="users", on="userId", how="left")},
)


def order(*fields: tuple[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": "Order", "fields": [{"name": name, "type": type_} for name, type_ in fields]}


CUSTOMER = {"type": "record", "name": "Customer", "fields": [{"name": "city", "type": ["null", "string"]}]}
VERSIONS = [
    order(("userId", "string"), ("amount", "int")),
    order(("amount", "long"), ("userId", ["null", "string"]), ("customer", ["null", CUSTOMER])),
    order(("customer", CUSTOMER), ("userId", "string"), ("amount", "string")),
]


@pytest.fixture
def registry() -> Iterator[TestRegistry]:
    with TestRegistry(login="liveboard:geheim") as running:
        yield running


def test_b39_schemas_arrive_while_the_board_runs_and_no_record_is_lost(
    kafka: str, registry: TestRegistry, tmp_path: Path
) -> None:
    schemas: dict[int | None, Any] = {}

    def register(version: int) -> int:
        schema_id = registry.register("orders-value", VERSIONS[version])
        schemas[schema_id] = VERSIONS[version]
        return schema_id

    def orders(schema_id: int, count: int) -> Iterator[Event]:
        version = VERSIONS.index(schemas[schema_id])
        for number in range(count):
            amount = f"{number}.5" if version == 2 else number
            document = {"userId": f"u{number % 3}", "amount": amount, "customer": {"city": f"c{number}"}}
            yield Event("orders", encoded(VERSIONS[version], document, schema_id), FIRST_MS + number, number % 2)

    with emptied(kafka), closing(Bench(kafka, BOARD, "g1", read_avro=AvroOracle(schemas).read)) as bench:
        bench.admin.create((source.topic for source in BOARD.sources.values()), partitions=2)
        first = register(0)
        bench.produce(orders(first, 5))
        bench.produce([Event("users", b'{"userId":"u1","name":"Ada"}', FIRST_MS)])
        with closing(Pipeline(kafka, BOARD, tmp_path, **login(registry))) as pipeline:
            pipeline.wait_until_live()
            bench.expect_oracle()

            second = register(1)
            bench.produce([*orders(second, 5), *orders(first, 2)])
            bench.expect_oracle()

            broken = [header(second) + b"\x02", b"no Avro", header(4711) + b"x"]
            bench.produce(Event("orders", value, FIRST_MS) for value in broken)
            bench.produce(orders(second, 2))
            rejects = bench.expect_oracle()["rejects_ui"].values()
            assert len(rejects) == 3

            third = register(2)
            registry.close()
            bench.produce([*orders(third, 5), *orders(first, 2)])
            until(lambda: "waiting for the Avro schema 3 since" in status(bench).message, "a sentence on the registry")
            assert registry.url in status(bench).message
            assert status(bench).phase is Phase.RESTARTING
            assert "starts again in" not in pipeline.said(), "a schema that was not known yet was taken for a failure"
            pipeline.kill("python")
            pipeline.start()
            until(lambda: "waiting for the Avro schema 3 since" in pipeline.said(), "the same after a crash")
            registry.open()
            bench.expect_oracle()
            until(lambda: status(bench).phase is Phase.LIVE, "a live board")
            assert status(bench).message == ""

            # What was learnt is known without the registry, also after a crash.
            registry.close()
            pipeline.kill("java")
            pipeline.start()
            bench.produce([*orders(third, 2), *orders(first, 2)])
            bench.expect_oracle()
            pipeline.stop()
            assert "building" not in pipeline.said()
    assert "geheim" not in (tmp_path / "pipeline.out").read_text()


def test_b39_a_build_is_taken_up_again_when_its_schemas_are_known(
    kafka: str, registry: TestRegistry, tmp_path: Path
) -> None:
    # Not under the topic's name, so that it is unknown until the build comes to its records.
    schema_id = registry.register("com.shop.Order", VERSIONS[0])
    value = encoded(VERSIONS[0], {"userId": "u1", "amount": 5}, schema_id)
    with (
        emptied(kafka),
        closing(Bench(kafka, BOARD, "g1", read_avro=AvroOracle({schema_id: VERSIONS[0]}).read)) as bench,
    ):
        bench.admin.create((source.topic for source in BOARD.sources.values()), partitions=2)
        # More than what is followed from the beginning.
        bench.produce(Event("orders", value, FIRST_MS, number % 2) for number in range(5_001))
        registry.close()
        with closing(Pipeline(kafka, BOARD, tmp_path, **login(registry))) as pipeline:
            until(lambda: "waiting for the Avro schema 1 since" in status(bench).message, "a sentence on the registry")
            assert status(bench).phase is Phase.WAITING
            registry.open()
            pipeline.wait_until_live()
            bench.expect_oracle()
            assert "could not be built" not in pipeline.said()
            pipeline.stop()


def login(registry: TestRegistry) -> dict[str, str]:
    return {
        "LIVEBOARD_REGISTRY_URL": registry.url,
        "LIVEBOARD_REGISTRY_USERNAME": "liveboard",
        "LIVEBOARD_REGISTRY_PASSWORD": "geheim",
    }


def status(bench: Bench) -> BoardStatus:
    """The newest document on record; an empty one before the first."""
    if Names().status not in bench.admin.partitions():
        return BoardStatus(sources=())
    messages = bench.topics.messages(Names().status)
    return decode_status(messages[-1].value()) if messages else BoardStatus(sources=())
