"""What Prometheus is told of the pipeline's process."""

from __future__ import annotations

import contextlib
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import psutil
from prometheus_client import CollectorRegistry, ProcessCollector, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from py4j.protocol import Py4JError

from liveboard.config import PipelineSettings
from liveboard.contract.errors import LiveboardError
from liveboard.contract.status import BoardStatus, Phase, State
from liveboard.orchestrator.workplace import Workplace


class PipelineMetrics(Collector):
    """Looks at the orchestrator's work when Prometheus asks; before there is any, at the processes alone.

    `broker` is where the embedded broker has its data, if there is one.
    """

    def __init__(self, broker: Path, *, standby: bool = False) -> None:
        self.port = 0
        """Where they are served; 0 while they are not."""
        self._broker = broker
        self._standby = standby
        self._work: Workplace | None = None

    def watch(self, work: Workplace) -> None:
        """Tells of this work from now on."""
        self._work = work

    @contextlib.contextmanager
    def served(self, settings: PipelineSettings) -> Iterator[None]:
        """Answers Prometheus meanwhile, where a port is configured."""
        if not settings.metrics_port:
            yield
            return
        registry = CollectorRegistry()
        registry.register(self)
        ProcessCollector(registry=registry)
        try:
            server, thread = start_http_server(settings.metrics_port, settings.metrics_host, registry)
        except OSError as error:
            place = f"{settings.metrics_host}:{settings.metrics_port}"
            raise LiveboardError(
                f"pipeline.metrics_port: expected to listen at {place}, found: {error.strerror}; set another port"
            ) from None
        self.port = server.server_port
        try:
            yield
        finally:
            server.shutdown()
            server.server_close()
            thread.join()

    def collect(self) -> Iterator[Metric]:
        """The state as of now."""
        yield from _processes(self._broker)
        work = self._work
        is_waiting = self._standby and work is None
        yield GaugeMetricFamily("liveboard_pipeline_standby", "1 while it waits for its turn", float(is_waiting))
        if is_waiting:
            # What the board does is told by its owner.
            return
        status = work.status if work else BoardStatus(sources=())
        phase = GaugeMetricFamily("liveboard_pipeline_phase", "1 for what the board is doing", labels=("phase",))
        for each in Phase:
            phase.add_metric((each,), float(each is status.phase))
        generations = GaugeMetricFamily("liveboard_pipeline_generations", "By state", labels=("state",))
        for state in State:
            generations.add_metric((state,), sum(record.state is state for record in status.generations.values()))
        yield from (phase, generations)
        if work is None:
            return
        yield GaugeMetricFamily(
            "liveboard_pipeline_status_age_seconds",
            "Since the status was written last",
            time.monotonic() - work.record.kept_at,
        )
        starts = CounterMetricFamily(
            "liveboard_pipeline_query_starts", "How often a generation's query was started", labels=("generation",)
        )
        for name in work.running.names:
            starts.add_metric((name,), work.running.starts(name))
        yield starts
        yield from _heap(work)


def _processes(broker: Path) -> Iterator[Metric]:
    """What this process takes, the Java that it has started, and the embedded broker."""
    memory, seconds = defaultdict[str, int](int), defaultdict[str, float](float)
    me = psutil.Process()
    for known, process in (*(("", each) for each in (me, *me.children(recursive=True))), *_broker(broker)):
        with contextlib.suppress(psutil.Error):
            name = known or ("java" if "java" in process.name() else "python")
            memory[name] += process.memory_info().rss
            seconds[name] += process.cpu_times().user + process.cpu_times().system
    labels = ("process",)
    resident = GaugeMetricFamily("liveboard_pipeline_memory_bytes", "Resident memory", labels=labels)
    processor = CounterMetricFamily("liveboard_pipeline_cpu_seconds", "Time of the processor", labels=labels)
    for name in memory:
        resident.add_metric((name,), memory[name])
        processor.add_metric((name,), seconds[name])
    yield from (resident, processor)


def _broker(directory: Path) -> Iterator[tuple[str, psutil.Process]]:
    """The embedded broker that runs on a directory, if one does: it signs its lock, and works there."""
    with contextlib.suppress(OSError, ValueError, psutil.Error):
        process = psutil.Process(int((directory / "lock").read_text()))
        if Path(process.cwd()) == directory.resolve():
            yield "broker", process


def _heap(work: Workplace) -> Iterator[Metric]:
    """Of Spark's driver; nothing while it does not answer."""
    with contextlib.suppress(Py4JError, OSError, AttributeError):
        java = work.spark._jvm
        assert java is not None
        usage = java.java.lang.management.ManagementFactory.getMemoryMXBean().getHeapMemoryUsage()
        used, most = usage.getUsed(), usage.getMax()
        yield GaugeMetricFamily("liveboard_pipeline_heap_bytes", "Used heap of Spark's driver", used)
        yield GaugeMetricFamily("liveboard_pipeline_heap_max_bytes", "How large it may become", most)
