"""What Prometheus is told of the pipeline, over HTTP."""

from __future__ import annotations

import time
import urllib.request
from types import SimpleNamespace
from typing import Any, cast

import pytest
from ports import closed_port

from liveboard.config import PipelineSettings
from liveboard.contract.board import Wiring
from liveboard.contract.errors import LiveboardError
from liveboard.contract.status import BoardStatus, GenerationRecord, Phase, State
from liveboard.orchestrator.metrics import PipelineMetrics


class Usage:
    """Of a heap."""

    def __getattr__(self, name: str) -> Any:
        return {"getUsed": lambda: 5, "getMax": lambda: 9}.get(name, self)

    def __call__(self) -> Usage:
        return self


def told(metrics: PipelineMetrics) -> dict[str, float]:
    with urllib.request.urlopen(f"http://127.0.0.1:{metrics.port}/metrics") as answer:
        lines = [line for line in answer.read().decode().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def test_the_pipeline_tells_what_it_does_from_its_start_on() -> None:
    metrics = PipelineMetrics()
    with metrics.served(PipelineSettings(metrics_port=closed_port())):
        found = told(metrics)
        assert found['liveboard_pipeline_phase{phase="starting"}'] == 1
        assert found['liveboard_pipeline_memory_bytes{process="python"}'] > 1e6
        record = GenerationRecord(state=State.LIVE, wiring=Wiring({}, {}), tables={})
        status = BoardStatus(sources=(), live="g1", generations={"g1": record}, phase=Phase.RESTARTING)
        work = SimpleNamespace(
            status=status,
            record=SimpleNamespace(kept_at=time.monotonic() - 60),
            running=SimpleNamespace(names=["g1"], starts=lambda _: 3),
            spark=SimpleNamespace(_jvm=Usage()),
        )
        metrics.watch(cast(Any, work))
        found = told(metrics)
    assert found['liveboard_pipeline_phase{phase="starting"}'] == 0
    assert found['liveboard_pipeline_phase{phase="restarting"}'] == 1
    assert found['liveboard_pipeline_generations{state="live"}'] == 1
    assert found['liveboard_pipeline_query_starts_total{generation="g1"}'] == 3
    assert found["liveboard_pipeline_status_age_seconds"] >= 60
    assert (found["liveboard_pipeline_heap_bytes"], found["liveboard_pipeline_heap_max_bytes"]) == (5, 9)


def test_without_a_port_nobody_listens_and_a_taken_one_is_one_sentence() -> None:
    with PipelineMetrics().served(PipelineSettings()):
        pass
    metrics = PipelineMetrics()
    with metrics.served(PipelineSettings(metrics_port=closed_port())):
        taken = PipelineSettings(metrics_port=metrics.port)
        with pytest.raises(LiveboardError, match="expected to listen at"), PipelineMetrics().served(taken):
            pass
