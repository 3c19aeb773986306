"""`liveboard doctor`: looks at all that liveboard needs, and says what to do where it is wrong."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import socket
import ssl
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import NamedTuple, TypeVar

import psutil

from liveboard.commands import access
from liveboard.config import Settings
from liveboard.contract.errors import LiveboardError
from liveboard.contract.formats import FORMATS
from liveboard.contract.names import CONTROL_TABLE
from liveboard.install import java, libraries
from liveboard.kafka import address, security, trouble
from liveboard.kafka.admin import Admin
from liveboard.kafka.registry import Registry, value_subject

_DEADLINE_S = 9.5
_ANSWER_S = 3.0
_KAFKA_TIMEOUT_S = 8.0
_GB = 1e9
_MEMORY_GB = 2.0
_DISK_GB = 1.0

T = TypeVar("T")


class Kafka(NamedTuple):
    """Kafka as it was found: every topic with its number of partitions, or None and why."""

    partitions: dict[str, int] | None
    text: str
    admin: Admin | None = None


Check = Callable[[Settings, "Future[Kafka]"], str]
"""Says what it has found; raises a LiveboardError for a problem."""


def run(settings: Settings, show: Callable[[str], None] = print) -> bool:
    """Shows one line per check and returns whether all is well; never raises, takes ten seconds at most."""
    deadline = time.monotonic() + _DEADLINE_S
    kafka: Future[Kafka] = Future()
    _later(partial(_ask_kafka, settings, kafka))
    checks = {name: _later(partial(check, settings, kafka)) for name, check in CHECKS.items()}
    problems = 0
    for name, found in checks.items():
        ok, text = _result(found, deadline)
        problems += not ok
        show(f"{'ok' if ok else 'problem':<8} {name:<15} {text}")
    show(f"{problems} problem{'s' if problems > 1 else ''}" if problems else "all is well")
    return not problems


def _later(work: Callable[[], T]) -> Future[T]:
    """The result of work in a thread that nobody has to wait for."""
    future: Future[T] = Future()

    def run_it() -> None:
        try:
            future.set_result(work())
        except Exception as error:
            future.set_exception(error)

    threading.Thread(target=run_it, daemon=True).start()
    return future


def _result(found: Future[str], deadline: float) -> tuple[bool, str]:
    try:
        return True, found.result(max(0.0, deadline - time.monotonic()))
    except LiveboardError as error:
        return False, str(error)
    except TimeoutError:
        return False, f"expected an answer within {_DEADLINE_S:.0f} s, found none: is the machine overloaded?"
    except Exception as error:
        return False, f"this could not be checked: {type(error).__name__}: {error}"


def _python(settings: Settings, kafka: Future[Kafka]) -> str:
    return f"{platform.python_version()} in {sys.prefix}"


def _java(settings: Settings, kafka: Future[Kafka]) -> str:
    java.executable()
    return f"{java.MAJOR} in {java.HOME}"


def _libraries(settings: Settings, kafka: Future[Kafka]) -> str:
    jars = len(libraries.jars("spark")) + len(libraries.jars("broker"))
    return f"{jars} jars in {libraries.directory()}"


def _memory(settings: Settings, kafka: Future[Kafka]) -> str:
    available = psutil.virtual_memory().available / _GB
    if available < _MEMORY_GB:
        raise LiveboardError(
            f"expected {_MEMORY_GB:.0f} GB for Spark and the broker, found {available:.1f} GB available; "
            "end other programs"
        )
    return f"{available:.1f} GB available"


def _storage(settings: Settings, kafka: Future[Kafka]) -> str:
    directory = settings.storage.dir.absolute()
    place = next(path for path in (directory, *directory.parents) if path.exists())
    try:
        with tempfile.TemporaryFile(dir=place):
            free = shutil.disk_usage(place).free / _GB
    except OSError as error:
        raise LiveboardError(
            f"storage.dir: expected a directory that can be written, found {place}: {error.strerror}; make "
            "it writable or choose another storage.dir"
        ) from None
    if free < _DISK_GB:
        raise LiveboardError(
            f"storage.dir: expected {_DISK_GB:.0f} GB free, found {free:.1f} GB at {directory}; make room or "
            "choose another storage.dir"
        )
    return f"{free:.0f} GB free at {directory}"


def _kafka_port(settings: Settings, kafka: Future[Kafka]) -> str:
    port = settings.kafka.port
    if not settings.kafka.embedded:
        return "not used, since kafka.bootstrap_servers names a Kafka"
    if not port:
        return "0: the embedded broker takes any free one"
    if _answer(kafka).partitions is not None:
        return f"{port} is answered by a Kafka"
    return _free_port("kafka.port", "127.0.0.1", port)


def _server_port(settings: Settings, kafka: Future[Kafka]) -> str:
    server = settings.server
    if server.port and (found := _own_server(access.recall(settings).url)):
        return f"{server.port} of {server.host} is answered by {found}"
    return _free_port("server.port", server.host, server.port)


def _own_server(url: str) -> str:
    """What the server at the address says it is, if it is one of liveboard's; otherwise nothing."""
    # Only its name is asked for, so it does not matter who has signed its certificate.
    trusting = ssl._create_unverified_context()
    try:
        with urllib.request.urlopen(f"{url}/healthz", timeout=_ANSWER_S, context=trusting) as answer:
            name = str(json.load(answer).get("server", ""))
            return name if name.startswith("liveboard ") else ""
    except (OSError, ValueError, AttributeError):
        return ""


def _free_port(key: str, host: str, port: int) -> str:
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(place)
    except OSError as error:
        raise LiveboardError(
            f"{key}: expected a free port, found {port} of {host}: {error.strerror or error}; end the "
            f"program that uses it or choose another {key}"
        ) from None
    return f"{port} of {host} is free"


def _ask_kafka(settings: Settings, answer: Future[Kafka]) -> None:
    """Sets the answer itself: a client that waits for its token takes 20 s to end, and it ends with this function."""
    try:
        servers = address.reachable(address.bootstrap(settings))
        security.java(settings.kafka, servers)  # says what is wrong with PEM files
        admin = Admin(security.librdkafka(settings.kafka, servers))
        answer.set_result(Kafka(admin.partitions(), servers, admin))
    except LiveboardError as error:
        answer.set_result(Kafka(None, str(error)))
    except Exception as error:
        answer.set_exception(error)


def _answer(kafka: Future[Kafka]) -> Kafka:
    try:
        return kafka.result(_KAFKA_TIMEOUT_S)
    except TimeoutError:
        return Kafka(
            None,
            f"kafka: expected a Kafka broker to answer, found none within {_KAFKA_TIMEOUT_S:.0f} s; check "
            "kafka.bootstrap_servers and kafka.security_protocol",
        )


def _kafka(settings: Settings, kafka: Future[Kafka]) -> str:
    found = _answer(kafka)
    if found.partitions is not None:
        return f"{len(found.partitions)} topics at {found.text}"
    if settings.kafka.embedded:
        return "the embedded broker is not running: `liveboard up` starts it"
    raise LiveboardError(found.text)


def _topics(settings: Settings, kafka: Future[Kafka]) -> str:
    found = _answer(kafka)
    if found.partitions is None and not settings.kafka.embedded:
        raise LiveboardError("expected topics to look at, found no Kafka; see above")
    known = found.partitions or {}
    wanted = [source.topic for source in settings.board.sources.values()]
    refused = _refused(found, wanted)
    missing = ", ".join(topic for topic in wanted if topic not in known and topic not in refused)
    present = ", ".join(f"{topic} (partitions: {known[topic]})" for topic in wanted if topic in known)
    if missing and not settings.kafka.embedded:
        raise LiveboardError(
            f"expected the topics {', '.join(wanted)}, found {present or 'none of them'}; create {missing}"
        )
    return ", ".join(filter(None, [present, missing and f"{missing} to be created by `liveboard up`"]))


def _permissions(settings: Settings, kafka: Future[Kafka]) -> str:
    found = _answer(kafka)
    if found.admin is None:
        return "not checked without a Kafka"
    topics = [source.topic for source in settings.board.sources.values()]
    if refused := _refused(found, [*topics, settings.names.control]):
        raise LiveboardError(trouble.permission(refused, "read"))
    names = settings.names
    found.admin.require_permissions([names.status, names.verdicts], names.changelog("g0", CONTROL_TABLE))
    return f"the topics may be read, and those of {names.board}* written"


def _refused(kafka: Kafka, topics: list[str]) -> set[str]:
    return kafka.admin.unreadable(topics) if kafka.admin else set()


def _control(settings: Settings, kafka: Future[Kafka]) -> str:
    topic = settings.names.control
    return topic if topic in (_answer(kafka).partitions or {}) else f"{topic}, which does not exist yet"


def _registry(settings: Settings, kafka: Future[Kafka]) -> str:
    sources = [source for source in settings.board.sources.values() if FORMATS[source.format].needs_schemas]
    topics = [source.topic for source in sources if not source.avro_schema_file]
    if not topics:
        return "not used, since no source asks one for its schemas"
    registry = Registry(settings.registry)
    versions = {topic: registry.count(value_subject(topic)) for topic in topics}
    known = [f"{value_subject(topic)} (versions: {count})" for topic, count in versions.items() if count]
    # Not a problem: producers register it with their first record, or have other names for their subjects.
    unknown = [f"no {value_subject(topic)} yet" for topic, count in versions.items() if not count]
    return f"{', '.join([*known, *unknown])} at {registry.url}"


def _slots(settings: Settings, kafka: Future[Kafka]) -> str:
    from liveboard.pipeline import session

    known = _answer(kafka).partitions or {}
    partitions = {source.topic: known.get(source.topic, 1) for source in settings.board.sources.values()}
    shuffle = session.configured_shuffle_partitions(settings.spark) or session.SHUFFLE_PARTITIONS
    needed = session.slots_needed(settings.board, partitions, shuffle)
    master = settings.spark.master
    local = re.fullmatch(r"local\[(\d+|\*)(?:,\d+)?\]", master)
    if not local:
        return f"{needed} needed, " + ("as many made" if master == "local" else f"checked by {master}")
    found = (os.cpu_count() or 1) if local[1] == "*" else int(local[1])
    if found < needed:
        raise LiveboardError(
            f'spark.master: expected {needed} task slots or more, found {found} in {master}; use "local"'
        )
    return f"{needed} needed, {found} in {master}"


CHECKS: dict[str, Check] = {
    "Python": _python,
    "Java": _java,
    "Java libraries": _libraries,
    "memory": _memory,
    "storage": _storage,
    "kafka.port": _kafka_port,
    "server.port": _server_port,
    "Kafka": _kafka,
    "topics": _topics,
    "control topic": _control,
    "permissions": _permissions,
    "registry": _registry,
    "task slots": _slots,
}
