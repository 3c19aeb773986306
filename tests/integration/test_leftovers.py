"""B11, B35: what an owner can go on with is where its own checkpoints are, whatever the record names."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from random import Random
from types import SimpleNamespace

import orjson
import pytest
from boards import FIRST_MS
from harness import Bench, Event, until
from pyspark.sql import SparkSession

from liveboard.config import Settings, StorageSettings, default_board
from liveboard.contract.status import Phase
from liveboard.orchestrator import service
from liveboard.orchestrator.workplace import Workplace

pytestmark = pytest.mark.integration

DEFAULT = default_board()
TOPICS = {name: replace(source, topic=f"{source.topic}-moved") for name, source in DEFAULT.sources.items()}
BOARD = replace(DEFAULT, name="moved", sources=TOPICS)


@contextmanager
def owned(kafka: str, directory: Path) -> Iterator[str]:
    """An owner of the board that is at work, with this storage; gives the generation that is live."""
    settings = Settings(board=BOARD, storage=StorageSettings(dir=directory))
    stopping, said, works = threading.Event(), list[str](), list[Workplace]()

    def live() -> str | None:
        status = works[0].status if works else None
        return status.live if status and status.phase is Phase.LIVE and status.live in works[0].usable else None

    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(service.run, settings, kafka, said.append, stopping, works.append)
        try:
            until(lambda: live() or running.done(), lambda: f"a live generation, found {said}")
            generation = live()
            assert generation, said
            yield generation
        finally:
            stopping.set()
        running.result()


def some_events(random: Random) -> Iterator[Event]:
    for _ in range(60):
        value = {"userId": f"u{random.randrange(20)}", "age": random.randrange(99), "balance": random.random()}
        yield Event(random.choice(["users", "accounts"]), orjson.dumps(value), FIRST_MS + random.randrange(5_000))


def test_b11_b35_an_owner_that_has_another_storage_builds_anew(
    kafka: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The worker's Spark instead of one for each owner.
    monkeypatch.setattr(service._Service, "_spark", lambda _: nullcontext(SimpleNamespace(session=spark)))
    random = Random(5)
    with owned(kafka, tmp_path / "first") as first, closing(Bench(kafka, BOARD, first)) as bench:
        bench.produce(some_events(random))
        bench.expect_oracle()
        bench.produce(some_events(random))
    with owned(kafka, tmp_path / "second") as second, closing(Bench(kafka, BOARD, second)) as bench:
        assert second != first
        bench.produce(some_events(random))
        bench.expect_oracle()
        # What another owner has left is not ours to delete.
        checkpoints = {str(path.relative_to(tmp_path)) for path in tmp_path.glob("*/pipeline/g*")}
        assert checkpoints == {f"first/pipeline/{first}", f"second/pipeline/{second}"}
