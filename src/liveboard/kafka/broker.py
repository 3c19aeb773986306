"""The embedded broker: one real Kafka node in KRaft mode, a child process bound to loopback."""

import base64
import contextlib
import errno
import fcntl
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from liveboard.contract.errors import LiveboardError
from liveboard.install import java, libraries
from liveboard.kafka import guard

HOST = "127.0.0.1"
_READY_TIMEOUT_S = 180.0
_STOP_TIMEOUT_S = 30.0
_PORT_TRIES = 5

# Relative paths: the broker runs in its directory, so that Kafka need not understand the directory's name.
_SERVER = """\
# Written by liveboard at every start.
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{host}:{controller_port}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://{host}:{port},CONTROLLER://{host}:{controller_port}
advertised.listeners=PLAINTEXT://{host}:{port}
log.dirs={data}

auto.create.topics.enable=false
num.partitions=1
default.replication.factor=1
min.insync.replicas=1
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0

# Data stays until its topic is deleted.
log.retention.ms=-1
log.segment.bytes=268435456
message.max.bytes=33554432
replica.fetch.max.bytes=33554432

# One small machine, shared with Spark.
num.network.threads=2
num.io.threads=4
background.threads=2
num.recovery.threads.per.data.dir=2
log.cleaner.dedupe.buffer.size=67108864
metric.reporters=

# After a crash the controller waits this long for the lost broker before it takes the new one (default: 9 s). With 2 s,
# a machine that was busy for a moment lost its only broker, and all topics changed their leader.
broker.session.timeout.ms=6000
broker.heartbeat.interval.ms=1000
"""

_LOGGING = """\
# Written by liveboard at every start.
rootLogger.level=info
rootLogger.appenderRef.file.ref=file
appender.file.type=RollingFile
appender.file.name=file
appender.file.fileName=broker.log
appender.file.filePattern=broker.log.%i
appender.file.layout.type=PatternLayout
appender.file.layout.pattern=%d{ISO8601} %p %m (%c)%n
appender.file.policies.type=Policies
appender.file.policies.size.type=SizeBasedTriggeringPolicy
appender.file.policies.size.size=10MB
appender.file.strategy.type=DefaultRolloverStrategy
appender.file.strategy.max=1
"""

_JVM = [
    "-Xms256m",
    "-Xmx1g",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:+ExitOnOutOfMemoryError",
    "-XX:-UsePerfData",
    "-Djava.net.preferIPv4Stack=true",
    "-Djava.awt.headless=true",
    "-Djava.io.tmpdir=tmp",
    "-Dlog4j2.configurationFile=log4j2.properties",
]


class Broker:
    """A broker on a directory of its own, which holds its data, settings and logs.

    It answers when `start` returns, it ends with the Python process that started it, and its data is intact
    after any end. No two brokers run on one directory. Every failure is a LiveboardError.
    """

    def __init__(self, directory: Path, port: int = 0) -> None:
        self.directory = directory.absolute()
        self._wanted_port = port
        self._port = port
        self._process: subprocess.Popen[bytes] | None = None
        self._held: list[int] = []
        self._stopping = False
        self._log_start = (0, 0)

    @property
    def bootstrap_servers(self) -> str:
        return f"{HOST}:{self._port}"

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def start(self, show: Callable[[str], None] = lambda _: None, jvm: tuple[str, ...] = ()) -> None:
        """Returns when the broker answers; `show` gets a line every second, `jvm` adds options for Java."""
        if self.alive:
            raise LiveboardError(f"The broker in {self.directory} is running already.")
        self._release()
        command = [str(java.executable()), *_JVM, *java.cached(libraries.cache("broker")), *jvm, "-cp", _class_path()]
        self._stopping = False
        with self._failing_clearly():
            self.directory.mkdir(parents=True, exist_ok=True)
            self._lock()
            _remove(self.directory / "tmp")
            (self.directory / "tmp").mkdir()
            self._write("log4j2.properties", _LOGGING)
            cluster = self._cluster(command, show)
            for tries_left in reversed(range(_PORT_TRIES)):
                taken = self._launch(command, cluster, show)
                if taken is None:
                    return
                if taken == self._wanted_port or not tries_left:
                    raise LiveboardError(_port_in_use(taken))

    def stop(self) -> None:
        """Ends the broker: cleanly, or after 30 seconds by force."""
        self._stopping = True
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(_STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._release()

    def wait(self) -> None:
        """Returns when `stop` has ended the broker; raises when anything else has."""
        if self._process is not None:
            self._process.wait()
        self.check()

    def check(self) -> None:
        """Raises when the broker has ended on its own, and says why."""
        if self._process is not None and not self.alive and not self._stopping:
            raise LiveboardError(self._reason(self._process.returncode))

    @contextlib.contextmanager
    def _failing_clearly(self) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            if self._process is not None:
                self._process.kill()
                self._process.wait()
            self._release()
            if isinstance(error, OSError):
                raise LiveboardError(self._unusable(error)) from error
            raise

    def _lock(self) -> None:
        """The lock is on the open file, which the broker inherits: it lasts as long as either process."""
        lock = os.open(self.directory / "lock", os.O_RDWR | os.O_CREAT, 0o644)
        self._held.append(lock)
        deadline = time.monotonic() + 1
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                # A broker that has just been killed may still be on its way out.
                if time.monotonic() > deadline:
                    owner = os.pread(lock, 20, 0).decode().strip()
                    raise LiveboardError(
                        f"The broker directory {self.directory} is in use by the broker with process id "
                        f"{owner}: stop that one, or choose another storage.dir."
                    ) from None
                time.sleep(0.05)
            else:
                self._sign(os.getpid())
                return

    def _sign(self, pid: int) -> None:
        os.pwrite(self._held[0], f"{pid:<20}\n".encode(), 0)

    def _release(self, keep: int = 0) -> None:
        while len(self._held) > keep:
            os.close(self._held.pop())

    def _cluster(self, java: list[str], show: Callable[[str], None]) -> str:
        """The cluster's id in the data directory, which the first start makes as a whole or not at all."""
        data = self.directory / "data"
        if not data.exists() or not any(data.iterdir()):
            show("preparing the broker's storage")
            self._format(java, self.directory / "data.new").rename(data)
        cluster = _cluster_id(data)
        if not cluster:
            raise LiveboardError(
                f"{data} holds something other than the data of an embedded broker: move it away, or choose "
                "another storage.dir."
            )
        return cluster

    def _format(self, java: list[str], new: Path) -> Path:
        _remove(new)
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        self._write("format.properties", _SERVER.format(host=HOST, port=1, controller_port=2, data=new.name))
        done = subprocess.run(
            [
                *java,
                "kafka.tools.StorageTool",
                "format",
                f"--cluster-id={cluster}",
                "-c",
                "format.properties",
            ],
            cwd=self.directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        (self.directory / "format.properties").unlink()
        if done.returncode != 0 or _cluster_id(new) != cluster:
            raise LiveboardError(self._explain(done.stdout, "could not prepare its storage"))
        return new

    def _launch(self, java: list[str], cluster: str, show: Callable[[str], None]) -> int | None:
        """Starts Kafka and waits until it answers; returns the port that somebody else took, if one did."""
        self._port, controller_port = _ports(self._wanted_port)
        ports = {"port": self._port, "controller_port": controller_port}
        self._write("server.properties", _SERVER.format(host=HOST, data="data", **ports))
        self._log_start = (_size(self.directory / "broker.log"), _size(self.directory / "broker.out"))
        self._process = self._spawn([*java, "kafka.Kafka", "server.properties"])
        self._sign(self._process.pid)
        started = shown = time.monotonic()
        while not self._answers(cluster):
            if self._process.poll() is not None:
                taken = re.search(r"failed to bind to \S+:(\d+)[^\n]*Address already in use", self._output())
                if taken:
                    return int(taken[1])
                raise LiveboardError(self._reason(self._process.returncode))
            now = time.monotonic()
            if now - started > _READY_TIMEOUT_S:
                raise LiveboardError(
                    f"The broker did not answer on {self.bootstrap_servers} within {_READY_TIMEOUT_S:.0f} s: "
                    f"see {self.directory / 'broker.log'}."
                )
            if now - shown >= 1:
                show(f"starting the broker on {self.bootstrap_servers}, {now - started:.0f} s")
                shown = now
            time.sleep(0.05)
        return None

    def _spawn(self, command: list[str]) -> subprocess.Popen[bytes]:
        self._release(keep=1)
        lock = self._held[0]
        pipe, owner = os.pipe()
        self._held.append(owner)
        try:
            with (self.directory / "broker.out").open("ab") as out:
                return subprocess.Popen(
                    [sys.executable, "-I", "-S", guard.__file__, str(pipe), str(lock), *command],
                    cwd=self.directory,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=subprocess.STDOUT,
                    pass_fds=(pipe, lock),
                    start_new_session=True,  # Ctrl-C is for the owner, who stops the broker last
                )
        finally:
            os.close(pipe)

    def _answers(self, cluster: str) -> bool:
        try:
            socket.create_connection((HOST, self._port), timeout=1).close()
            client = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})
            metadata = client.list_topics(timeout=2)
        except (OSError, KafkaException):
            return False
        return bool(metadata.brokers) and metadata.cluster_id == cluster

    def _write(self, name: str, text: str) -> None:
        (self.directory / name).write_text(text, "ascii")

    def _output(self) -> str:
        """What the broker has said since its start."""
        text = ""
        for name, start in zip(("broker.log", "broker.out"), self._log_start, strict=True):
            with contextlib.suppress(OSError), (self.directory / name).open("rb") as file:
                file.seek(min(start, _size(self.directory / name)))
                text += file.read().decode(errors="replace")
        return text

    def _reason(self, code: int) -> str:
        ended = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        return self._explain(self._output(), ended)

    def _explain(self, output: str, what: str) -> str:
        """One sentence from what a JVM printed."""
        if re.search(r"No space left on device|Disk quota exceeded", output) or self._full():
            return self._unusable(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
        if denied := re.search(r"Permission denied|Read-only file system|AccessDeniedException", output):
            return self._unusable(OSError(errno.EACCES, denied[0]))
        if re.search(r"OutOfMemoryError|insufficient memory|Could not reserve enough space", output):
            return f"The broker {what}, out of memory: it needs 1 GB free."
        errors = re.findall(r"^\S+ (?:ERROR|FATAL) (.+)$|^(?:Error|Exception|java\.)[^\n]*: (.+)$", output, re.M)
        said = f" ({''.join(errors[-1])[:200].strip()})" if errors else ""
        return f"The broker {what}{said}: see {self.directory / 'broker.log'} and start it again."

    def _unusable(self, error: OSError) -> str:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return f"The disk of the broker directory {self.directory} is full: make room and start again."
        return (
            f"The broker directory {self.directory} cannot be written ({error.strerror}): make it writable, "
            "or choose another storage.dir."
        )

    def _full(self) -> bool:
        with contextlib.suppress(OSError):
            return shutil.disk_usage(self.directory).free < 1 << 20
        return False


def make_cache() -> None:
    """Keeps what Java learns in a run of the broker: every later start takes half the time."""
    cache = libraries.cache("broker")
    work = cache.with_name("broker-cache")
    _remove(work)
    try:
        broker = Broker(work)
        broker.start(jvm=tuple(java.caching(work / "broker.aot")))
        broker.stop()
        (work / "broker.aot").rename(cache)
    except OSError as error:
        raise LiveboardError(f"What Java learnt of the broker could not be kept in {cache} ({error}).") from error
    finally:
        _remove(work)


def _class_path() -> str:
    return os.pathsep.join(str(jar) for jar in libraries.jars("broker"))


def _ports(wanted: int) -> tuple[int, int]:
    """The broker's port, which is free now, and another free one for its controller."""
    with socket.socket() as first, socket.socket() as second:
        first.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            first.bind((HOST, wanted))
        except OSError as error:
            raise LiveboardError(_port_in_use(wanted, error)) from None
        second.bind((HOST, 0))
        return first.getsockname()[1], second.getsockname()[1]


def _port_in_use(port: int, error: OSError | None = None) -> str:
    if error and error.errno != errno.EADDRINUSE:
        return f"Port {port} of {HOST} cannot be used ({error.strerror}): choose another kafka.port."
    return (
        f"Port {port} of {HOST} is in use by another process: stop that one, or choose another kafka.port (0 "
        "takes any free one)."
    )


def _cluster_id(data: Path) -> str | None:
    """The id of the cluster that a data directory belongs to, if it is one of ours."""
    try:
        text = (data / "meta.properties").read_text("latin-1")
    except FileNotFoundError:
        return None
    properties = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    return properties.get("cluster.id") if properties.get("node.id") == "1" else None


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


def _remove(directory: Path) -> None:
    if directory.exists():
        shutil.rmtree(directory)
