"""What a generation reads and writes: its topics, its changelogs, and how both Kafka clients of Spark are set up."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from liveboard.contract.board import Board
from liveboard.contract.names import Names
from liveboard.kafka.admin import MAX_CHANGELOG_BYTES, Offsets
from liveboard.pipeline.avro_schema import AvroSchemas
from liveboard.pipeline.kafka_columns import need_headers

# Spark's word for it: a topic may have got more partitions.
_EARLIEST = -2


@dataclass(frozen=True)
class Plan:
    """One wiring of the board, from where its topics are read, and where its tables go."""

    names: Names
    generation: str
    board: Board
    starting_offsets: Offsets
    kafka_options: Mapping[str, str]
    schemas: Mapping[str, AvroSchemas] = field(default_factory=dict)
    """By the names of the sources whose values need them."""
    cores: int = os.cpu_count() or 1
    """That a batch job can have, on this machine or on all machines of a cluster."""

    def changelog(self, table: str) -> str:
        """The changelog topic of one of the generation's tables."""
        return self.names.changelog(self.generation, table)

    @property
    def repairs(self) -> str:
        """The topic of the keys that wait for a repair."""
        return self.names.repairs(self.generation)

    def following(self) -> dict[str, str]:
        """Options of a stream that reads the sources for ever."""
        return {
            **self._source_options(fails_on_loss=True),
            "subscribe": ",".join(sorted(self.starting_offsets)),
            "startingOffsets": json.dumps(self.starting_offsets),
        }

    def remembering(self) -> dict[str, str]:
        """Options of a stream that reads what the sources hold now."""
        return {**self.following(), **self._in_bulk(), "failOnDataLoss": "false"}

    def between(self, start: Offsets, end: Offsets) -> dict[str, str]:
        """Options of a batch job that reads these topics from `start`, where it is known, up to `end`."""
        begin = {topic: {p: start[topic].get(p, _EARLIEST) for p in partitions} for topic, partitions in end.items()}
        return {
            **self._source_options(fails_on_loss=False),
            **self._in_bulk(),
            "subscribe": ",".join(sorted(end)),
            "startingOffsets": json.dumps(begin),
            "endingOffsets": json.dumps(end),
        }

    @property
    def readers(self) -> int:
        """How many tasks of a batch job read at once, at most: each has a copy of the whole query in memory."""
        return 8 * self.cores

    @property
    def writers(self) -> int:
        """How many tasks of a batch job sort and write at once: some for every core, as keys differ in length."""
        return 2 * self.cores

    def writing(self, *, in_bulk: bool) -> dict[str, str]:
        """Options of whatever writes changelogs."""
        # The stream sends at once, but one request at a time: the rows that come while Kafka answers go together, and
        # share what a request costs the broker, the pipeline and every server. Where there are few, none waits.
        batching = {"linger.ms": "20"} if in_bulk else {"linger.ms": "0", "max.in.flight.requests.per.connection": "1"}
        batching["batch.size"] = "262144"
        limits = {"max.request.size": str(MAX_CHANGELOG_BYTES), "buffer.memory": str(2 * MAX_CHANGELOG_BYTES)}
        # Writers with the same options share one client, and wait at checkpoints for all that it still has to send.
        # What another generation has left there may be for topics that are gone: it is given up after two minutes.
        own = {"client.id": f"{self.names.board}-{self.generation}-{'bulk' if in_bulk else 'follow'}"}
        return {f"kafka.{key}": value for key, value in {**self.kafka_options, **batching, **limits, **own}.items()}

    def _source_options(self, *, fails_on_loss: bool) -> dict[str, str]:
        """A stream fails when records vanish before it has read them; whoever starts it again says so first."""
        return {
            **{f"kafka.{key}": value for key, value in self.kafka_options.items()},
            "failOnDataLoss": str(fails_on_loss).lower(),
            **({"includeHeaders": "true"} if need_headers(self.board.sources.values()) else {}),
        }

    def _in_bulk(self) -> dict[str, str]:
        return {
            # Splits long partitions, so that one topic with one partition still keeps every core busy. Not into more:
            # all the pieces are read at once, and their tasks would take the cores' caches from each other.
            "minPartitions": str(2 * self.cores),
            # Spark asks for the topic's ends on a connection on which the consumer already waits for what comes next.
            "kafka.fetch.max.wait.ms": "10",
        }
