"""B34: records that Kafka deleted before they were read are told, and what comes after them is read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any, cast

import boards
import pytest
from boards import FIRST_MS, with_suffix
from harness import Bench, Event, made, until
from msgspec.structs import replace as changed
from pyspark.sql import SparkSession

from liveboard.contract.status import BoardStatus, GenerationRecord, State
from liveboard.contract.tables import table_columns
from liveboard.orchestrator.losses import Losses, MadeAgain
from liveboard.orchestrator.record import BoardRecord
from liveboard.pipeline.checkpoints import Checkpoints, local_address

pytestmark = pytest.mark.integration
_runs = count(1)


class Played:
    """Plays the record in Kafka and the checkpoint."""

    def __init__(self, bench: Bench) -> None:
        plan = bench.plan()
        self.status = BoardStatus(
            sources=(),
            live=bench.generation,
            generations={
                bench.generation: GenerationRecord(
                    state=State.LIVE,
                    wiring=bench.board.wiring,
                    tables=table_columns(bench.board),
                    starting_offsets=plan.starting_offsets,
                    topics=bench.admin.topic_ids(plan.starting_offsets),
                )
            },
        )
        self.checkpoint: Any = None

    def keep(self, status: BoardStatus) -> None:
        self.status = status

    def read_up_to(self, generation: str) -> Any:
        return self.checkpoint

    def go_on_from(self, generation: str, offsets: Any) -> None:
        self.checkpoint = offsets

    def remove(self, generation: str) -> None:
        self.checkpoint = None


@pytest.fixture
def bench(kafka: str) -> Iterator[Bench]:
    with closing(Bench(kafka, with_suffix(boards.one_join("left"), f"losses-{next(_runs)}"))) as bench:
        bench.create_topics()
        yield bench


def users(*numbers: int) -> Iterator[Event]:
    for number in numbers:
        yield Event("users", json.dumps({"userId": f"u{number}", "name": "n"}).encode(), FIRST_MS + number)


def topic(bench: Bench) -> str:
    return bench.board.sources["users"].topic


def losses_of(bench: Bench, record: Played, checkpoints: Any = None, said: list[str] | None = None) -> Losses:
    log = said.append if said is not None else lambda text: None
    config = {"bootstrap.servers": bench.bootstrap}
    checkpoints = cast(Checkpoints, checkpoints or record)
    return Losses(bench.admin, config, bench.names, cast(BoardRecord, record), checkpoints, log)


def test_b34_what_was_deleted_is_told_once_however_often_it_is_found(bench: Bench) -> None:
    played, said = Played(bench), list[str]()
    losses = losses_of(bench, played, said=said)
    bench.produce(users(*range(50)))
    assert not losses.look(bench.generation)
    bench.admin.delete_records(topic(bench), 42)
    played.checkpoint = before = {topic(bench): {"0": 10}, bench.board.sources["accounts"].topic: {"0": 0}}
    assert losses.look(bench.generation)
    assert played.checkpoint == {**before, topic(bench): {"0": 42}}
    assert not losses.look(bench.generation)
    # A crash before the stream has gone on, and more that was deleted meanwhile.
    played.checkpoint = before
    bench.admin.delete_records(topic(bench), 43)
    assert losses.look(bench.generation)

    ((key, row),) = bench.table("rejects_ui").items()
    reason = "records 10 to 42 were deleted by Kafka before all of them were read (33 records)"
    assert key == f"{topic(bench)}-0-10+"
    assert row[:5] == (topic(bench), 0, 10, reason, None)
    (lost,) = played.status.generations[bench.generation].lost.values()
    assert (lost.topic, lost.records) == (topic(bench), 33)
    assert said[-1] == f"{bench.generation}: of topic '{topic(bench)}', partition 0, {reason}"


def test_b34_before_anything_was_read_and_while_it_was_built(bench: Bench) -> None:
    played = Played(bench)
    losses = losses_of(bench, played)
    bench.produce(users(*range(5)))
    bench.admin.delete_records(topic(bench), 1)
    losses.look_at_build(bench.generation)
    assert losses.look(bench.generation)
    assert played.status.generations[bench.generation].starting_offsets[topic(bench)] == {"0": 1}
    (row,) = bench.table("rejects_ui").values()
    assert row[3] == "record 0 was deleted by Kafka before it was read (1 record)"
    assert played.status.generations[bench.generation].lost[f"{topic(bench)}-0"].records == 1


def test_b34_a_topic_that_was_made_again_is_another_topic(bench: Bench) -> None:
    played = Played(bench)
    losses = losses_of(bench, played)
    bench.produce(users(*range(5)))
    assert losses.replaced(bench.generation) == ""
    bench.admin.delete([topic(bench)])
    until(lambda: topic(bench) not in bench.admin.partitions(), "the end of the topic")
    bench.admin.create([topic(bench)])
    assert f"topic '{topic(bench)}' was deleted and created again" in losses.replaced(bench.generation)
    with pytest.raises(MadeAgain):
        losses.look(bench.generation)

    # The next generation has it in its rejects.
    record = played.status.generations[bench.generation]
    anew = changed(record, topics=bench.admin.topic_ids(record.topics))
    played.status = changed(played.status, generations={"g0": record, bench.generation: anew}, live="g0")
    losses.tell_replaced(bench.generation)
    losses.tell_replaced(bench.generation)
    ((key, row),) = bench.table("rejects_ui").items()
    assert key == f"{topic(bench)}+"
    assert "was deleted and created again" in str(row[3])


def test_b34_a_stream_goes_on_after_what_was_deleted(spark: SparkSession, bench: Bench, checkpoint: Path) -> None:
    played = Played(bench)
    checkpoints = Checkpoints(spark, local_address(checkpoint.parent))
    losses = losses_of(bench, played, checkpoints)
    name = checkpoint.name
    played.status = changed(played.status, generations={name: played.status.generations[bench.generation]})
    bench.admin.create_generation(bench.names, name, bench.columns)
    plan = bench.plan()
    generation = made(spark, lambda: plan, checkpoint)
    bench.produce(users(*range(5)))
    try:
        generation.build()
        until(generation.is_built)
        assert checkpoints.read_up_to(name) == bench.admin.offsets(dict.fromkeys(plan.starting_offsets, 1), "latest")
        bench.produce(users(*range(5, 15)))
        bench.admin.delete_records(topic(bench), 10)
        generation.follow(anew=losses.look(name))
        bench.expect_rows("users_ui", 10)
        bench.produce(users(15))
        bench.expect_rows("users_ui", 11)
        assert generation.failure() == ""
    finally:
        generation.stop()
