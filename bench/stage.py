"""What every measure gets to run: a broker, a directory and the sizes; and what a suite of measures is."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from report import Figure

from liveboard.kafka.admin import Admin

PATIENCE_S = 300.0


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """How much is measured, and how long."""

    seconds: int = 30
    """How long an even load lasts, unless a field below says so."""
    warm_up_s: int = 15
    rest_s: int = 20
    users: int = 100_000
    accounts: int = 1_000_000
    latency_users: int = 10_000
    checkpoint_s: int = 120
    follow_warm_up: int = 200_000
    keys: tuple[int, ...] = (1, 3, 300, 100_000)
    keys_records: int = 300_000
    keys_short: int = 1_000
    keys_s: int = 5
    swaps: int = 5
    rows: int = 1_000_000
    """Of the table that the server alone is measured with."""
    workers: tuple[int, ...] = (1, 2, 4)
    """Of Spark clusters."""
    replicas: tuple[int, ...] = (1, 2, 4)
    replica_viewers: int = 400
    changes: tuple[int, ...] = (1_000, 10_000, 50_000)
    """A second, of rows at a server."""
    page_rows: int = 100_000
    warm_builds: int = 2
    long_s: int = 330
    """Longer than the time between two checkpoints of liveboard."""
    viewers: tuple[int, ...] = (1, 100, 1_000)
    crowd_s: int = 15
    histories: tuple[int, ...] = (10_000, 100_000, 1_000_000, 5_000_000)
    per_key: tuple[int, ...] = (1, 100, 10_000)
    growth_s: int = 10
    first_s: int = 60
    limit_rows: int = 10_000_000
    limit_viewers: int = 5_000
    limit_tables: tuple[int, ...] = (100, 200)
    limit_table_rows: int = 1_000
    limit_columns: int = 1_000
    limit_wide_records: int = 2_000
    limit_record_bytes: int = 8_000_000
    limit_too_large: int = 10_000_000
    limit_records: int = 20
    limit_keys: int = 1_000_000
    limit_hot_records: int = 10_000_000


QUICK = Sizes(
    seconds=6,
    warm_up_s=2,
    rest_s=2,
    users=1_000,
    accounts=10_000,
    latency_users=1_000,
    checkpoint_s=5,
    follow_warm_up=1_000,
    keys=(1, 3, 30, 300),
    keys_records=900,
    keys_short=30,
    keys_s=1,
    swaps=1,
    rows=20_000,
    workers=(1,),
    replicas=(1, 2),
    replica_viewers=20,
    changes=(1_000,),
    page_rows=2_000,
    warm_builds=1,
    long_s=6,
    viewers=(20,),
    crowd_s=4,
    histories=(20_000,),
    per_key=(100,),
    growth_s=3,
    first_s=10,
    limit_rows=20_000,
    limit_viewers=50,
    limit_tables=(5,),
    limit_table_rows=10,
    limit_columns=50,
    limit_wide_records=20,
    limit_record_bytes=2_000_000,
    limit_too_large=9_000_000,
    limit_records=2,
    limit_keys=2_000,
    limit_hot_records=2_000,
)


@dataclass(frozen=True)
class Stage:
    """The broker that all measures of a suite share, and a directory for what they leave."""

    bootstrap: str
    broker_pid: int
    directory: Path
    sizes: Sizes

    @property
    def client_config(self) -> dict[str, str]:
        """How to reach the broker."""
        return {"bootstrap.servers": self.bootstrap}

    @property
    def admin(self) -> Admin:
        """What creates and deletes topics."""
        return Admin(self.client_config)

    def new_topics(self) -> tuple[str, str]:
        """New, empty topics for users and accounts."""
        number = time.time_ns()
        topics = f"users-{number}", f"accounts-{number}"
        self.admin.create(topics)
        return topics


Extra = dict[str, Any]
"""What is kept of a run beside its figures."""
Measure = Callable[[Stage], list[Figure] | tuple[list[Figure], Extra]]


@dataclass(frozen=True, kw_only=True)
class Suite:
    """Measures that are made on one stage and kept in one file."""

    title: str
    file: str
    measures: Mapping[str, Measure]
    seconds: int
    """How long an even load lasts."""
    rounds: int = 1
    once: tuple[str, ...] = ()
    """What is measured in one round only."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Of what is measured beside liveboard."""
    draw: Callable[[Path], None] | None = None
    """Makes plots of the kept figures."""


def cpu_s(processes: Iterable[psutil.Process]) -> float:
    """The processor time that they have used so far."""
    times = [process.cpu_times() for process in processes]
    return sum(each.user + each.system for each in times)


class Meter:
    """The processor time that processes use from now on; one that ends meanwhile is left out from its end."""

    def __init__(self, processes: Iterable[psutil.Process]) -> None:
        self._before: dict[psutil.Process, float] = {}
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                self._before[process] = cpu_s([process])

    def used_s(self) -> float:
        """How much it is so far."""
        used = 0.0
        for process, before in self._before.items():
            with suppress(psutil.NoSuchProcess):
                used += cpu_s([process]) - before
        return used


def cores(processes: Iterable[psutil.Process], seconds: float) -> float:
    """How many cores they use over the next seconds."""
    meter, began = Meter(processes), time.monotonic()
    time.sleep(seconds)
    return meter.used_s() / (time.monotonic() - began)


def memory_gb(processes: Iterable[psutil.Process]) -> float:
    """Their memory; what several share is counted once (PSS)."""
    return sum(process.memory_full_info().pss for process in processes) / 1e9
