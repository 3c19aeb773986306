"""The Spark session that the pipeline runs in."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import MappingProxyType, ModuleType

import pyspark
from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from liveboard.config import SparkSettings
from liveboard.config.settings import StorageSettings
from liveboard.contract.board import LARGEST_VALUE_BYTES, Board
from liveboard.contract.errors import LiveboardError
from liveboard.install import java, libraries
from liveboard.install.libraries import jars
from liveboard.pipeline import driver, kept, lambdas, sizing, stores

# Threads that wait cost nothing, and there may be many generations at once, of topics with many partitions.
_LOCAL_SLOTS = 512
_EXECUTORS_TIMEOUT_S = 60.0
_END_TIMEOUT_S = 60.0
_LOOK_S = 0.2
_TESTING = "pyspark.testing"
_SHUFFLE = "spark.sql.shuffle.partitions"

# One per core of a small machine. A generation keeps the number that it began with.
SHUFFLE_PARTITIONS = 2
# What a cluster must have beside the slots that streams hold for ever, so that repairs find one.
BATCH_SLOTS = 2
# Executors give up so long after their driver has fallen silent, and are gone before a standby can be there. Otherwise
# those of a driver whose machine is gone would go on to write until their batch ends.
_HEARTBEAT_S, _HEARTBEATS = 2, 3
_SETTLED_S = 5.0

_ON_THIS_DISK = StorageSettings()

# A record that is no Avro may claim to hold a text or an array of any length, for which Avro would take memory.
_AVRO_LIMITS = {
    f"org.apache.avro.limits.{what}.maxLength": str(LARGEST_VALUE_BYTES)
    for what in ("bytes", "string", "collectionItems")
}

# Spark generates methods over the size up to which Java compiles: interpreted, they take twice the time.
_COMPILE_HUGE = "-XX:-DontCompileHugeMethods"

# The good compiler puts so much into each other that a method of Kafka's client takes it most of a second. With less of
# that, what is hot is compiled sooner and runs as fast: a quarter of the processor less at 1,000 events/s in the first
# minute.
_INLINE_LESS = ("-XX:FreqInlineSize=120", "-XX:MaxInlineLevel=8", "-XX:InlineSmallCode=1000")

# Spark is one process here, and takes every core for a build. Broker and servers, which need little, go first: without,
# a server was behind by seconds when the rows were written.
_NICENESS = 5

_SECRET = "secret|password|token|credential|access[.]?key|jaas|keystore|truststore"
_CONF = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Whether a stream's tasks run is told at once: by default, news that come within 100 ms of others are told later.
    "spark.ui.liveUpdate.period": "0",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    # Real-Time Mode asks for it; it is also what lets a micro-batch checkpoint go on in Real-Time Mode.
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
    # What a record waits for in the shuffle at most: 50 ms by default. With 1 ms, all steps wake up more often than
    # they have to, and under load records are not answered any sooner.
    "spark.shuffle.streaming.networkBufferMaxWaitTimeMs": "2",
    # Connections have checksums of their own.
    "spark.shuffle.streaming.checksum.enabled": "false",
    "spark.sql.streaming.metricsEnabled": "false",
    # Remembering the Python line of every expression doubles the time it takes to put a query together.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # Counting the keys costs a read for every write, and nobody asks for their number.
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false",
    # File systems have checksums of their own; Spark's are one more file beside every file of a checkpoint.
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    # Every checkpoint is a whole one; older ones only take disk.
    "spark.sql.streaming.minBatchesToRetain": "2",
    # Every generation has Kafka clients of its own. Those that nobody needs any more go after this time, not after ten
    # minutes.
    "spark.kafka.producer.cache.timeout": "60s",
    "spark.kafka.producer.cache.evictorThreadRunInterval": "20s",
    # What a generation remembered is put away by this round, not by one a minute: of a hundred swaps in a row, each had
    # files and threads of its own until then.
    "spark.sql.streaming.stateStore.maintenanceInterval": "15s",
    # 64 MiB each by default, two for every partition of every join.
    "spark.sql.streaming.stateStore.rocksdb.writeBufferSizeMB": "16",
    "spark.sql.streaming.stateStore.rocksdb.maxWriteBufferNumber": "2",
    # What was sorted in pieces is read back through a buffer of 1 MB for each, not of 3 MB.
    "spark.unsafe.sorter.spill.read.ahead.enabled": "false",
    # Plans, which are in the log and the UI, show the options of sources and sinks; Spark's own patterns let the Kafka
    # login and the client's key pass.
    "spark.redaction.regex": f"(?i){_SECRET}",
    "spark.sql.redaction.options.regex": f"(?i)url|{_SECRET}",
}

_ALONE = {
    # The driver is its only executor, and need not hear from itself: on a machine that has slept for two minutes it
    # would otherwise take that executor for lost, and give up.
    "spark.storage.blockManagerHeartbeatTimeoutMs": "365d",
    # One for each slot by default, and slots are hundreds here.
    "spark.rpc.netty.dispatcher.numThreads": "8",
    # Hadoop's own starts a process (chmod) for every file that it writes: twenty for each swap. On a cluster it stays,
    # since executors need files before they have this class.
    "spark.hadoop.fs.file.impl": "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem",
}

_LOG_CONFIG = """\
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {file}
appender.file.filePattern = {file}.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{ISO8601}} %p %c{{1}}: %m%n
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 10MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 2
"""


def slots_needed(board: Board, partitions: Mapping[str, int], shuffle_partitions: int) -> int:
    """The task slots of one generation: Real-Time Mode holds one for every input and shuffle partition at once."""
    return sum(partitions[source.topic] for source in board.sources.values()) + shuffle_partitions


def configured_shuffle_partitions(settings: SparkSettings) -> int | None:
    """In how many partitions joins are computed, where that was decided; otherwise None, and it is derived."""
    if _SHUFFLE in settings.conf:
        return int(settings.conf[_SHUFFLE])
    return SHUFFLE_PARTITIONS if is_local(settings.master) else None


def derived_shuffle_partitions(slots: int, inputs: int) -> int:
    """For a cluster with so many slots and a board with so many input partitions.

    A join costs more than reading, so there are two for each input; but a swap, which builds a second generation beside
    the first, must fit in too.
    """
    return max(SHUFFLE_PARTITIONS, min(2 * inputs, (slots - BATCH_SLOTS) // 2 - inputs))


def is_local(master: str) -> bool:
    """Whether Spark runs in the driver's process alone."""
    return master.startswith("local")


def cores(session: SparkSession) -> int:
    """How many cores a batch job can have: the machine's, the cluster's, or what `spark.default.parallelism` says."""
    context = session.sparkContext
    if is_local(str(context.master)):
        return int(context.getConf().get("spark.default.parallelism") or os.cpu_count() or 1)
    return context.defaultParallelism


def slots(session: SparkSession) -> int:
    """How many tasks can run at once, as soon as the cluster has given all that it gives."""
    if is_local(str(session.sparkContext.master)):
        return slots_now(session)
    deadline = time.monotonic() + _EXECUTORS_TIMEOUT_S
    found, since = 0, time.monotonic()
    while time.monotonic() < deadline:
        now = slots_now(session)
        if now != found:
            found, since = now, time.monotonic()
        elif found and time.monotonic() - since > _SETTLED_S:
            break
        time.sleep(_LOOK_S)
    return found


def slots_now(session: SparkSession) -> int:
    """The same, of what the cluster has given by now."""
    context = session.sparkContext
    if is_local(str(context.master)):
        # The default parallelism may be set, and is then about cores.
        threads = re.match(r"local\[(\d+)", str(context.master))
        return int(threads[1]) if threads else os.cpu_count() or 1
    executors = context._jsc.sc().getExecutorMemoryStatus().size() - 1
    return context.defaultParallelism if executors else 0


def create(settings: SparkSettings, directory: Path, board: Board | None = None) -> SparkSession:
    """A running session for a board; logs and scratch files are under `directory`."""
    return Launched(settings, directory, board=board).session


class Launched:
    """Java is running when this is made; the first to ask for `session` has Spark started in it.

    Until then nothing is taken from a cluster. `storage` says where checkpoints are; `show` is told when something has
    to be fetched for it. `board` is what it is to run, where that is known: a large one needs more memory.
    """

    def __init__(
        self,
        settings: SparkSettings,
        directory: Path,
        system_properties: Mapping[str, str] = MappingProxyType({}),
        storage: StorageSettings = _ON_THIS_DISK,
        show: Callable[[str], None] = lambda _: None,
        board: Board | None = None,
    ) -> None:
        leave_out_numpy()
        lambdas.name_by_nesting()
        kept.forget()
        os.environ["JAVA_HOME"] = str(java.HOME)
        # A SPARK_HOME of another Spark would be started instead of the one these settings are made for.
        os.environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
        scratch = directory / "tmp"
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True)
        extra = stores.jars(storage, show)
        of_user = filter(None, [settings.conf.get("spark.jars")])
        self._system_properties = system_properties
        self._conf: dict[str, bool | float | int | str | None] = {
            **_CONF,
            **sizing.conf(board or Board(sources={})),
            _SHUFFLE: str(SHUFFLE_PARTITIONS),
            **_directories(directory, scratch),
            **stores.conf(storage),
            **(_ALONE if is_local(settings.master) else _executor_options(system_properties)),
            **settings.conf,
            "spark.master": _master(settings.master),
            "spark.jars": ",".join([*map(str, (*jars("spark"), *extra)), *of_user]),
        }
        # Java gets these on its command line, which everyone on the machine can read; the rest comes after.
        seen = {key: str(value) for key, value in self._conf.items() if not re.search(_SECRET, key, re.I)}
        self._session: SparkSession | None = None
        self._begun: Future[SparkSession] | None = None
        niceness = _NICENESS if is_local(settings.master) else 0
        self._process = driver.start(seen, directory / "spark.out", extra, niceness)

    @property
    def session(self) -> SparkSession:
        """Spark, as soon as it runs."""
        if self._session is None:
            self._session = self._begun.result() if self._begun else self._start()
        return self._session

    def begin(self) -> None:
        """Has Spark started beside whatever else is done before it is asked for, if it does not run yet."""
        if self._session is None and self._begun is None:
            self._begun = ThreadPoolExecutor(1, "spark").submit(self._start)

    def rest(self) -> None:
        """Stops a Spark that was begun and is not needed after all, or could not start; Java runs on."""
        if self._session is None and self._begun:
            begun, self._begun = self._begun, None
            if not begun.exception():
                begun.result().stop()

    def _start(self) -> SparkSession:
        running = SparkSession.builder.appName("liveboard").config(map=self._conf).getOrCreate()
        SparkContext._gateway.proc = self._process  # type: ignore[union-attr]
        set_system_properties(running, self._system_properties)
        _load_rocksdb(running)
        return running

    def end(self) -> None:
        """Stops Spark, if it runs, and returns when its process is gone."""
        if self._session or self._begun:
            return end(self.session)
        self._process.kill()
        self._process.wait(_END_TIMEOUT_S)
        SparkContext._gateway = SparkContext._jvm = None
        return None


def leave_out_numpy() -> None:
    """Tells PySpark that there is no NumPy: for every value that goes to Java it asks its testing package about that.

    The real package imports pandas and PyArrow as well, where they are installed: 100 MB for nothing.
    """
    if _TESTING not in sys.modules:
        for name in (_TESTING, f"{_TESTING}.utils"):
            sys.modules[name] = ModuleType(name)
        vars(sys.modules[f"{_TESTING}.utils"])["have_numpy"] = False


def set_system_properties(session: SparkSession, properties: Mapping[str, str]) -> None:
    """Sets Java's system properties in the driver, which at a local master is the only process."""
    for name, value in properties.items():
        session.sparkContext._jvm.java.lang.System.setProperty(name, value)  # type: ignore[union-attr]


def end(session: SparkSession) -> None:
    """Stops Spark and returns when its process is gone."""
    gateway = session.sparkContext._gateway
    session.stop()
    if gateway is not None:
        gateway.shutdown()
        # PySpark's JVM ends when its standard input does.
        gateway.proc.stdin.close()
        gateway.proc.wait(_END_TIMEOUT_S)
        SparkContext._gateway = SparkContext._jvm = None


def check_slots(master: str, found: int, needed: int) -> None:
    """Refuses to go on with fewer slots than Real-Time Mode needs, since it would wait for ever."""
    if lacking := lacking_slots(master, found, needed):
        raise LiveboardError(lacking)


def lacking_slots(master: str, found: int, needed: int) -> str:
    """Says that there are too few; empty where there are enough."""
    return (
        f"spark.master: expected at least {needed} task slots (one per input and shuffle partition of each "
        f"generation), found {found} at {master}; give it more cores, the "
        "topics fewer partitions, or control.retire_after less time"
        if found < needed
        else ""
    )


def _load_rocksdb(session: SparkSession) -> None:
    """Loads the native library now: Spark would try only once, and a disk that is full at that moment can be mended."""
    streaming = getattr(session.sparkContext._jvm, "org.apache.spark.sql.execution.streaming")
    try:
        streaming.state.RocksDBLoader.loadLibrary()
    except Py4JJavaError as error:
        raise LiveboardError(
            f"spark: expected RocksDB's library to be loaded, found {error.java_exception.getMessage()}"
        ) from None


def _master(master: str) -> str:
    return f"local[{_LOCAL_SLOTS}]" if master == "local" else master


def _directories(directory: Path, scratch: Path) -> dict[str, str]:
    log_config = directory / "spark-log4j2.properties"
    log_config.write_text(_LOG_CONFIG.format(file=directory / "spark.log"))
    java_options = [f"-Dlog4j2.configurationFile={log_config.as_uri()}", f'"-Djava.io.tmpdir={scratch}"']
    # The other collectors are for heaps far larger than this one: the state is in RocksDB, outside of it. Builds take
    # the same time with this one and leave 150 MB less resident than with the parallel one, 450 MB less than with G1.
    java_options.append("-XX:+UseSerialGC")
    # Room for what is just in use, more of it the longer the keys: what does not fit is taken for old, and clearing
    # that out stops everything for 170 ms, with 400 records per key every 15 s.
    java_options += ["-XX:SurvivorRatio=3", "-XX:TargetSurvivorRatio=90"]
    # Room for the classes of Spark and of what it generates: at 21 MB, Java's first threshold, it would stop everything
    # and clear out the whole heap, for 0.2 s in the first seconds of a board.
    java_options.append("-XX:MetaspaceSize=256m")
    # With every 15 % of the room for compiled code that is taken, it would stop for the same: for 0.25 s in the first
    # minute, and again in later ones. When that room is nearly full, it still does.
    java_options.append("-XX:SweeperThreshold=80")
    java_options += [_COMPILE_HUGE, *_INLINE_LESS, "-XX:-UsePerfData"]
    java_options += [f"-D{name}={value}" for name, value in _AVRO_LIMITS.items()]
    told = [*java.cached(libraries.cache("spark")), *java.trusting(directory / "trusted.p12")]
    java_options += map(shlex.quote, told)
    return {
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch),
        "spark.driver.defaultJavaOptions": " ".join(java_options),
    }


def _executor_options(system_properties: Mapping[str, str]) -> dict[str, str]:
    options = [f'"-D{name}={value}"' for name, value in {**_AVRO_LIMITS, **system_properties}.items()]
    return {
        "spark.executor.defaultJavaOptions": " ".join([*options, _COMPILE_HUGE, *_INLINE_LESS]),
        "spark.executor.heartbeatInterval": f"{_HEARTBEAT_S}s",
        "spark.executor.heartbeat.maxFailures": str(_HEARTBEATS),
    }
