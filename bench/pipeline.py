"""The pipeline alone: from a topic to a changelog."""

from __future__ import annotations

from backfill import backfill
from cluster import cluster, on_yarn
from floor import floor
from follow import follow_throughput, memory
from formats import formats
from healing import healing, standby
from keys import keys
from latency import aggregate, latency
from owner import owner
from stage import Suite
from swap import swap

SUITE = Suite(
    title="the pipeline of liveboard",
    file="pipeline.json",
    measures={
        "latency": latency,
        "aggregate": aggregate,
        "backfill": backfill,
        "follow_throughput": follow_throughput,
        "keys": keys,
        "formats": formats,
        "swap": swap,
        "owner": owner,
        "memory": memory,
        "floor": floor,
        "cluster": cluster,
        "yarn": on_yarn,
        "healing": healing,
        "standby": standby,
    },
    seconds=120,
)
