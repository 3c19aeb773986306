"""What Prometheus is told of the pipeline, over HTTP."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
import urllib.request
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ports import closed_port

from liveboard.config import PipelineSettings
from liveboard.contract.board import Wiring
from liveboard.contract.errors import LiveboardError
from liveboard.contract.status import BoardStatus, GenerationRecord, Phase, State
from liveboard.orchestrator.metrics import PipelineMetrics

NOWHERE = Path("nowhere")


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


def work_of(phase: Phase) -> Any:
    """An orchestrator's work, as far as it is looked at."""
    record = GenerationRecord(state=State.LIVE, wiring=Wiring({}, {}), tables={})
    return SimpleNamespace(
        status=BoardStatus(sources=(), live="g1", generations={"g1": record}, phase=phase),
        record=SimpleNamespace(kept_at=time.monotonic() - 60),
        running=SimpleNamespace(names=["g1"], starts=lambda _: 3),
        spark=SimpleNamespace(_jvm=Usage()),
    )


def test_the_pipeline_tells_what_it_does_from_its_start_on() -> None:
    metrics = PipelineMetrics(NOWHERE)
    with metrics.served(PipelineSettings(metrics_port=closed_port())):
        found = told(metrics)
        assert found['liveboard_pipeline_phase{phase="starting"}'] == 1
        assert found['liveboard_pipeline_memory_bytes{process="python"}'] > 1e6
        assert found['liveboard_pipeline_cpu_seconds_total{process="python"}'] > 0
        assert found["process_cpu_seconds_total"] > 0
        metrics.watch(work_of(Phase.RESTARTING))
        found = told(metrics)
    assert found['liveboard_pipeline_phase{phase="starting"}'] == 0
    assert found['liveboard_pipeline_phase{phase="restarting"}'] == 1
    assert found['liveboard_pipeline_generations{state="live"}'] == 1
    assert found['liveboard_pipeline_query_starts_total{generation="g1"}'] == 3
    assert found["liveboard_pipeline_standby"] == 0
    assert found["liveboard_pipeline_status_age_seconds"] >= 60
    assert (found["liveboard_pipeline_heap_bytes"], found["liveboard_pipeline_heap_max_bytes"]) == (5, 9)


def test_java_and_the_embedded_broker_are_told_apart(tmp_path: Path) -> None:
    java = tmp_path / "java"
    java.symlink_to(shutil.which("sleep") or "")
    broker = tmp_path / "broker"
    broker.mkdir()
    metrics = PipelineMetrics(broker)
    with metrics.served(PipelineSettings(metrics_port=closed_port())):
        spark = subprocess.Popen([java, "60"])
        # Not its own child: `liveboard up` starts the broker beside the pipeline.
        kafka = int(subprocess.check_output(["sh", "-c", "sleep 60 > /dev/null & echo $!"], cwd=broker))
        try:
            assert 'liveboard_pipeline_memory_bytes{process="broker"}' not in told(metrics)
            (broker / "lock").write_text(f"{kafka:<20}\n")
            found = told(metrics)
            for metric in ("memory_bytes", "cpu_seconds_total"):
                names = {f'liveboard_pipeline_{metric}{{process="{name}"}}' for name in ("python", "java", "broker")}
                assert names == {name for name in found if name.startswith(f"liveboard_pipeline_{metric}")}
            assert found['liveboard_pipeline_memory_bytes{process="java"}'] > 0
        finally:
            spark.kill()
            spark.wait()
            os.kill(kafka, signal.SIGKILL)
        # The number of a process that has ended may be another one's.
        (broker / "lock").write_text(str(os.getpid()))
        assert 'liveboard_pipeline_memory_bytes{process="broker"}' not in told(metrics)


def test_a_standby_says_that_it_waits_and_nothing_about_the_board() -> None:
    metrics = PipelineMetrics(NOWHERE, standby=True)
    with metrics.served(PipelineSettings(metrics_port=closed_port())):
        found = told(metrics)
        assert found["liveboard_pipeline_standby"] == 1
        assert not [name for name in found if name.startswith("liveboard_pipeline_phase")]
        metrics.watch(work_of(Phase.LIVE))
        found = told(metrics)
    assert found["liveboard_pipeline_standby"] == 0
    assert found['liveboard_pipeline_phase{phase="live"}'] == 1


def test_without_a_port_nobody_listens_and_a_taken_one_is_one_sentence() -> None:
    with PipelineMetrics(NOWHERE).served(PipelineSettings()):
        pass
    metrics = PipelineMetrics(NOWHERE)
    with metrics.served(PipelineSettings(metrics_port=closed_port())):
        taken = PipelineSettings(metrics_port=metrics.port)
        with pytest.raises(LiveboardError, match="expected to listen at"), PipelineMetrics(NOWHERE).served(taken):
            pass
