"""What generations ask of Kafka."""

from __future__ import annotations

import boards

from liveboard.contract.names import Names
from liveboard.pipeline.plan import Plan


def test_no_generation_waits_for_what_another_still_has_to_send() -> None:
    plans = [Plan(Names(), name, boards.default_board(), {}, {"bootstrap.servers": "a:1"}) for name in ("g1", "g2")]
    writers = [plan.writing(in_bulk=in_bulk)["kafka.client.id"] for plan in plans for in_bulk in (False, True)]
    assert len(set(writers)) == len(writers)


def test_only_what_reads_to_an_end_may_split_partitions() -> None:
    plan = Plan(Names(), "g1", boards.default_board(), {"users": {"0": 0}}, {"bootstrap.servers": "a:1"}, cores=6)
    # Spark refuses it in Real-Time Mode.
    assert "minPartitions" not in plan.following()
    reading = plan.between({"users": {}}, {"users": {"0": 9}})
    assert reading["minPartitions"] == plan.remembering()["minPartitions"] == "12"
