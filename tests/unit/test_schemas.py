"""What is known of Avro schemas, and how the rest is learnt; against a real server of the registry's API."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from harness import until
from registry import TestRegistry

from liveboard.config import RegistrySettings
from liveboard.contract.board import Source
from liveboard.contract.errors import LiveboardError
from liveboard.kafka.registry import Registry
from liveboard.orchestrator import schemas
from liveboard.orchestrator.schemas import Schemas

ORDERS = Source(name="o", topic="orders", table="o_ui", schema="id bigint", format="avro")


@pytest.fixture
def server() -> Iterator[TestRegistry]:
    with TestRegistry() as running:
        yield running


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schemas, "_LOOK_AGAIN_S", 0.01)


def known(found: Schemas) -> tuple[dict[int, str], dict[int, str]]:
    of = found.of(ORDERS)
    return {schema_id: type_.text for schema_id, type_ in of.by_id.items()}, dict(of.unusable)


def made(server: TestRegistry, tmp_path: Path, said: list[str] | None = None) -> Schemas:
    log = (said if said is not None else []).append
    return Schemas([ORDERS], Registry(RegistrySettings(url=server.url)), tmp_path / "schemas.json", log)


def error(schema_id: int) -> str:
    return (
        f"Job aborted: [USER_RAISED_EXCEPTION] the Avro schema {schema_id} of the topic orders is not known yet SQLST"
    )


def settled(found: Schemas) -> bool:
    found.advance()
    return not found.waiting


def test_b39_all_versions_are_known_from_the_beginning(server: TestRegistry, tmp_path: Path) -> None:
    first, second = server.register("orders-value", "int"), server.register("orders-value", "long")
    server.register("other-value", "string")
    with closing(made(server, tmp_path)) as found:
        assert known(found) == ({first: "int", second: "long"}, {})


def test_b39_a_query_that_ended_for_want_of_a_schema_has_it_learnt(server: TestRegistry, tmp_path: Path) -> None:
    said: list[str] = []
    with closing(made(server, tmp_path, said)) as found:
        assert known(found) == ({}, {})
        by_id, more = server.register("elsewhere", "int"), server.register("orders-value", "long")
        assert found.learn(error(by_id))
        assert found.waiting
        assert found.problem == ""
        until(lambda: settled(found), "an answer")
        # With it come the versions that the subject has by now.
        assert known(found) == ({by_id: "int", more: "long"}, {})
        assert said == [f"asking {server.url} for the Avro schema 1 of 'orders'"]
        assert found.learn(error(by_id))
        assert not found.waiting
        assert not found.learn("something else")


def test_b39_what_the_registry_does_not_have_is_unusable_from_then_on(server: TestRegistry, tmp_path: Path) -> None:
    protobuf, broken = server.register("x", "int", kind="PROTOBUF"), server.register("y", {"type": "nothing"})
    with closing(made(server, tmp_path)) as found:
        known(found)
        for schema_id in (77, protobuf, broken):
            assert found.learn(error(schema_id))
        until(lambda: settled(found), "an answer")
        assert known(found) == (
            {},
            {
                77: "the registry has no such schema",
                protobuf: "the registry has a schema of type PROTOBUF",
                broken: 'expected an Avro type, found "nothing", which is not defined',
            },
        )
    assert server.asked.count("/schemas/ids/77") == 3
    # The next run asks again, and takes it to be so while the registry is away.
    server.close()
    with closing(made(server, tmp_path)) as later:
        assert known(later)[1][77] == "the registry has no such schema"
    server.open()
    while server.register("z", "int") < 77:
        pass
    with closing(made(server, tmp_path)) as later:
        assert known(later)[0] == {77: "int"}


def test_b39_while_the_registry_is_away_it_is_said_since_when_and_asked_again(
    server: TestRegistry, tmp_path: Path
) -> None:
    said: list[str] = []
    with closing(made(server, tmp_path, said)) as found:
        known(found)
        schema_id = server.register("orders-value", "long")
        server.close()
        assert found.learn(error(schema_id))
        until(lambda: settled(found) or found.problem, "a sentence")
        assert found.waiting
        assert found.problem.startswith("waiting for the Avro schema 1 since ")
        assert f"UTC: registry.url: expected a schema registry at {server.url}, found no answer" in found.problem
        assert said[-1] == found.problem
        server.open()
        until(lambda: settled(found), "an answer")
        assert found.problem == ""
        assert known(found) == ({schema_id: "long"}, {})


def test_b39_what_was_learnt_is_known_while_the_registry_is_away(server: TestRegistry, tmp_path: Path) -> None:
    schema_id = server.register("orders-value", "long")
    with closing(made(server, tmp_path)) as found:
        known(found)
    server.close()
    with closing(made(server, tmp_path)) as later:
        assert known(later) == ({schema_id: "long"}, {})
    with TestRegistry() as other, closing(made(other, tmp_path)) as elsewhere:
        # Ids of another registry mean other schemas.
        assert known(elsewhere) == ({}, {})
    (tmp_path / "schemas.json").write_text("broken")
    with closing(made(server, tmp_path)) as anew:
        assert known(anew) == ({}, {})


def test_b39_a_schema_file_is_the_only_schema_of_its_source(tmp_path: Path) -> None:
    file = tmp_path / "o.avsc"
    file.write_text('{"type":"record","name":"Order","fields":[]}')
    source = Source(
        name="o", topic="orders", table="o_ui", schema="id bigint", format="avro", avro_schema_file=str(file)
    )
    with closing(Schemas([source], None, tmp_path / "schemas.json", print)) as found:
        only = found.of(source).only
        assert only
        assert only.text == "record Order"
    assert schemas.file_texts([source, ORDERS]) == {"o": file.read_text()}
    file.write_text("{")
    with pytest.raises(LiveboardError, match=r"avro_schema_file: .*o.avsc: expected an Avro schema in JSON"):
        Schemas([source], None, tmp_path / "schemas.json", print)
    file.unlink()
    with pytest.raises(LiveboardError, match=r"expected an Avro schema in .*o.avsc, found: No such file"):
        schemas.file_texts([source])
