"""Where both systems are measured: one broker, the sizes, and what is common to all measures."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import psutil

from liveboard.kafka.admin import Admin

PATIENCE_S = 300.0


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """How much is measured, and how long."""

    users: int = 100_000
    accounts: int = 1_000_000
    warm_builds: int = 2
    rest_s: int = 10
    latency_users: int = 10_000
    latency_s: int = 30
    warm_up_s: int = 15
    long_s: int = 330
    """Longer than the time between two checkpoints of liveboard."""
    viewers: tuple[int, ...] = (1, 100, 1_000)
    crowd_s: int = 15
    histories: tuple[int, ...] = (10_000, 100_000, 1_000_000, 5_000_000)
    per_key: tuple[int, ...] = (1, 100, 10_000)
    growth_s: int = 10


QUICK = Sizes(
    users=1_000,
    accounts=10_000,
    warm_builds=1,
    rest_s=2,
    latency_users=1_000,
    latency_s=4,
    warm_up_s=2,
    long_s=6,
    viewers=(20,),
    crowd_s=4,
    histories=(20_000,),
    per_key=(100,),
    growth_s=3,
)


@dataclass(frozen=True)
class Stage:
    """The broker that everything shares, and a directory for what the measures leave."""

    bootstrap: str
    broker: tuple[psutil.Process, ...]
    directory: Path
    sizes: Sizes

    def new_topics(self) -> tuple[str, str]:
        """New, empty topics for users and accounts."""
        number = time.time_ns()
        topics = f"users-{number}", f"accounts-{number}"
        Admin({"bootstrap.servers": self.bootstrap}).create(topics)
        return topics

    def delete(self, topics: Iterable[str]) -> None:
        """Deletes topics."""
        Admin({"bootstrap.servers": self.bootstrap}).delete(topics)


def cpu_s(processes: Iterable[psutil.Process]) -> float:
    """The processor time that they have used so far."""
    times = [process.cpu_times() for process in processes]
    return sum(each.user + each.system for each in times)


def cores(processes: Iterable[psutil.Process], seconds: float) -> float:
    """How many cores they use over the next seconds."""
    listed = list(processes)
    before, began = cpu_s(listed), time.monotonic()
    time.sleep(seconds)
    return (cpu_s(listed) - before) / (time.monotonic() - began)


def memory_gb(processes: Iterable[psutil.Process]) -> float:
    """Their memory; what several share is counted once (PSS)."""
    return sum(process.memory_full_info().pss for process in processes) / 1e9
