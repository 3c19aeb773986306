"""B39 on the whole way: schemas that appear while the board runs, a registry that is away, and crashes in between."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Shop:
    """A board of orders in Avro, with a registry that comes and goes."""

    registry: TestRegistry
    bench: Bench
    pipeline: Pipeline
    schemas: dict[int | None, Any]
    first: int

    def register(self, version: int) -> int:
        """A version of the schema that the registry knows from now on; returns its id."""
        return _register(self.registry, self.schemas, "orders-value", version)

    def orders(self, schema_id: int, count: int) -> Iterator[Event]:
        """Events by that schema."""
        version = VERSIONS.index(self.schemas[schema_id])
        for number in range(count):
            amount = f"{number}.5" if version == 2 else number
            document = {"userId": f"u{number % 3}", "amount": amount, "customer": {"city": f"c{number}"}}
            yield Event("orders", encoded(VERSIONS[version], document, schema_id), FIRST_MS + number, number % 2)


def _register(registry: TestRegistry, schemas: dict[int | None, Any], subject: str, version: int) -> int:
    schema_id = registry.register(subject, VERSIONS[version])
    schemas[schema_id] = VERSIONS[version]
    return schema_id


@pytest.fixture(scope="module")
def shop(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """One that has just been started, with orders of a schema that it does not know, and no registry to ask."""
    directory, schemas = tmp_path_factory.mktemp("avro"), dict[int | None, Any]()
    with ExitStack() as stack:
        registry = stack.enter_context(TestRegistry(login="liveboard:geheim"))
        stack.enter_context(emptied(kafka))
        bench = stack.enter_context(closing(Bench(kafka, BOARD, "g1", read_avro=AvroOracle(schemas).read)))
        bench.admin.create((source.topic for source in BOARD.sources.values()), partitions=2)
        # Not under the topic's name, so that it is unknown until the build comes to its records.
        first = _register(registry, schemas, "com.shop.Order", 0)
        value = encoded(VERSIONS[0], {"userId": "u1", "amount": 5}, first)
        # More than what is followed from the beginning.
        bench.produce(Event("orders", value, FIRST_MS, number % 2) for number in range(5_001))
        registry.close()
        pipeline = stack.enter_context(closing(Pipeline(kafka, BOARD, directory, **login(registry))))
        yield Shop(registry, bench, pipeline, schemas, first)
    assert "geheim" not in (directory / "pipeline.out").read_text()


def test_b39_a_build_is_taken_up_again_when_its_schemas_are_known(shop: Shop) -> None:
    bench = shop.bench
    until(lambda: "waiting for the Avro schema 1 since" in status(bench).message, "a sentence on the registry")
    assert status(bench).phase is Phase.WAITING
    shop.registry.open()
    shop.pipeline.wait_until_live()
    bench.expect_oracle()
    assert "could not be built" not in shop.pipeline.said()


def test_b39_schemas_arrive_while_the_board_runs_and_no_record_is_lost(shop: Shop) -> None:
    registry, bench, pipeline = shop.registry, shop.bench, shop.pipeline
    registry.close()
    registry.open()
    pipeline.wait_until_live()
    first = shop.first
    bench.produce(shop.orders(first, 5))
    bench.produce([Event("users", b'{"userId":"u1","name":"Ada"}', FIRST_MS)])
    bench.expect_oracle()

    second = shop.register(1)
    bench.produce([*shop.orders(second, 5), *shop.orders(first, 2)])
    bench.expect_oracle()

    broken = [header(second) + b"\x02", b"no Avro", header(4711) + b"x"]
    bench.produce(Event("orders", value, FIRST_MS) for value in broken)
    bench.produce(shop.orders(second, 2))
    rejects = bench.expect_oracle()["rejects_ui"].values()
    assert len(rejects) == 3

    third = shop.register(2)
    registry.close()
    bench.produce([*shop.orders(third, 5), *shop.orders(first, 2)])
    waiting = f"waiting for the Avro schema {third} since"
    until(lambda: waiting in status(bench).message, "a sentence on the registry")
    assert registry.url in status(bench).message
    assert status(bench).phase is Phase.RESTARTING
    assert "starts again in" not in pipeline.said(), "a schema that was not known yet was taken for a failure"
    pipeline.kill("python")
    pipeline.start()
    until(lambda: waiting in pipeline.said(), "the same after a crash")
    registry.open()
    bench.expect_oracle()
    until(lambda: status(bench).phase is Phase.LIVE, "a live board")
    assert status(bench).message == ""

    # What was learnt is known without the registry, also after a crash.
    registry.close()
    pipeline.kill("java")
    pipeline.start()
    bench.produce([*shop.orders(third, 2), *shop.orders(first, 2)])
    bench.expect_oracle()
    pipeline.stop()
    assert "building" not in pipeline.said()


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
