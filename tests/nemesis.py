"""What can happen to a whole system: every fault, how it begins and how it ends."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

import psutil
from confluent_kafka import Producer
from harness import until
from msgspec.structs import replace as changed
from swapping import wiring
from system import System

from liveboard.contract.status import STATUS_KEY

_SECONDS_OFF = (-86_400, -60, -5, 5, 60, 86_400)


@dataclass(frozen=True)
class Fault:
    """Something that happens to a system, and its end."""

    name: str
    begin: Callable[[System], object]
    heal: Callable[[System], object] = lambda system: None
    weight: float = 1.0
    """How often it is chosen beside others: those after which Spark starts again take long."""
    alone: bool = False
    """Nothing else happens meanwhile: it waits for an answer of Kafka, or takes Kafka away."""
    least_s: float = 0.0
    """How long it lasts at least, so that anybody notices."""


_SLOW = {"weight": 0.06, "alone": True}
# A checkpoint is written in this time.
_CHECKPOINT_S = 17.0


def _signalled(who: str, number: signal.Signals) -> Callable[[System], None]:
    def send(system: System) -> None:
        for process in system.processes()[who]:
            # Java starts small helpers that end at once.
            with suppress(psutil.NoSuchProcess):
                process.send_signal(number)

    return send


def _stopped(who: str) -> Fault:
    return Fault(
        f"{who} is stopped", _signalled(who, signal.SIGSTOP), _signalled(who, signal.SIGCONT), alone=who == "broker"
    )


def _kill(what: str) -> Callable[[System], None]:
    java = "java" if what == "spark" else "python"
    return lambda system: system.board.pipeline.kill(java)


def _start(system: System) -> None:
    system.board.pipeline.start()


def _server_killed(number: int) -> Fault:
    return Fault(
        f"server {number} is killed",
        lambda system: system.servers[number - 1].kill(),
        lambda system: system.servers[number - 1].start(),
    )


def _broker_killed(system: System) -> None:
    os.kill(system.broker.pid or 0, signal.SIGKILL)
    until(lambda: not system.broker.alive, "the end of the broker")


def _on(link: str) -> list[Fault]:
    def heal(system: System) -> None:
        system.links[link].heal()

    return [
        Fault(f"{link} are cut off", lambda system: system.links[link].cut(), heal),
        Fault(f"{link} are slow", lambda system: system.links[link].slow(0.3), heal),
        Fault(f"{link} do not hear each other", lambda system: system.links[link].half_open(), heal),
    ]


def _jumping(who: str) -> Fault:
    def jump(system: System) -> None:
        system.clocks[who].set(system.chance.choice(_SECONDS_OFF))

    return Fault(f"the clock of {who} jumps", jump, lambda system: system.clocks[who].set(0), weight=0.5)


def _full(who: str) -> Fault:
    def heal(system: System) -> None:
        system.disks[who].clear()
        # As whoever runs them does.
        if who == "broker" and not system.broker.alive:
            system.broker.start()
        if who == "pipeline" and not system.board.pipeline.is_running():
            system.board.pipeline.start()

    slow = (
        {"weight": 0.3}
        if who.startswith("server")
        else {**_SLOW, "least_s": _CHECKPOINT_S if who == "pipeline" else 3.0}
    )
    return Fault(f"the disk of {who} is full", lambda system: system.disks[who].fill(), heal, **slow)  # type: ignore[arg-type]


def _confused(system: System) -> None:
    """Control messages twice, broken, old ones again; they end where they began."""
    board, here, there = system.board, system.here, system.there
    inner = wiring(system.number + 1, "inner")
    for message in (there, there, b"{", here, inner, {"usersTopic": 7}, here, here):
        board.ask(message)


def _checkpoint(system: System) -> Path:
    """Of what is live."""
    return system.board.pipeline.checkpoints / str(system.board.status().live)


def _forgetful(system: System) -> None:
    """The checkpoint of what is live is gone."""
    shutil.rmtree(_checkpoint(system), ignore_errors=True)


def _flip(file: Path, chance: Random) -> None:
    """Some bytes are others than before."""
    content = bytearray(file.read_bytes())
    for _ in range(min(len(content), 8)):
        content[chance.randrange(len(content))] ^= 0xFF
    file.write_bytes(content)


def _truncate(file: Path, chance: Random) -> None:
    os.truncate(file, file.stat().st_size // 2)


def _empty(file: Path, chance: Random) -> None:
    os.truncate(file, 0)


def _damaged(part: str, how: Callable[[Path, Random], None]) -> Callable[[System], None]:
    """All that is there of a part of the checkpoint, while nobody has it open."""

    def damage(system: System) -> None:
        _kill("pipeline")(system)
        files = [file for file in _checkpoint(system).glob(f"{part}/**/*") if file.is_file()]
        for file in files:
            if file.suffix != ".crc" and file.stat().st_size:
                how(file, system.chance)

    return damage


def _of_an_older_version(system: System) -> None:
    """The checkpoint is one that another version of liveboard has left."""
    _kill("pipeline")(system)
    status = system.board.status()
    older = {
        name: changed(record, fingerprint={**record.fingerprint, "state_format": 1})
        for name, record in status.generations.items()
    }
    producer = Producer({"bootstrap.servers": system.board.bootstrap, "log_level": 0})
    producer.produce(system.board.names.status, changed(status, generations=older).encode(), STATUS_KEY)
    assert producer.flush(60) == 0


def _changelog_deleted(system: System) -> None:
    """Of what is live."""
    system.board.admin.delete([system.board.names.changelog(str(system.board.status().live), "final_ui")])


STOPS = [_stopped(who) for who in ("broker", "pipeline", "spark", "server 1", "server 2")]
LINKS = [fault for link in ("pipeline and broker", "servers and broker", "viewer and server") for fault in _on(link)]
MESSAGES = [
    Fault("control messages come twice and out of order", _confused, alone=True),
    Fault(
        "a swap there and back",
        lambda system: system.board.ask(system.there),
        lambda system: system.board.ask(system.here),
        alone=True,
    ),
]
CLOCKS = [_jumping(who) for who in ("pipeline", "server 1", "server 2")]
SERVER_DISKS = [_full(f"server {number}") for number in (1, 2)]
SERVER_KILLS = [_server_killed(number) for number in (1, 2)]
DAMAGES = [
    Fault(f"the {part} of a checkpoint are {words}", _damaged(part, how), _start, weight=0.02, alone=True)
    for part in ("offsets", "commits", "state")
    for words, how in (("other bytes", _flip), ("cut short", _truncate), ("empty", _empty))
]
SLOW = [
    Fault("spark is killed", _kill("spark"), _start, **_SLOW),  # type: ignore[arg-type]
    Fault("pipeline is killed", _kill("pipeline"), _start, **_SLOW),  # type: ignore[arg-type]
    Fault("a standby replaces the pipeline", System.replace_the_pipeline, **_SLOW),  # type: ignore[arg-type]
    Fault("broker is killed", _broker_killed, lambda system: system.broker.start(), weight=0.15, alone=True),
    Fault("a checkpoint is lost", _forgetful, least_s=_CHECKPOINT_S, **_SLOW),  # type: ignore[arg-type]
    Fault("a changelog is deleted", _changelog_deleted, least_s=_CHECKPOINT_S, **_SLOW),  # type: ignore[arg-type]
    Fault("a checkpoint is of an older version", _of_an_older_version, _start, **_SLOW),  # type: ignore[arg-type]
    _full("pipeline"),
    _full("broker"),
]
QUICK = [*STOPS, *LINKS, *MESSAGES, *CLOCKS, *SERVER_DISKS, *SERVER_KILLS]
FAULTS = [*QUICK, *DAMAGES, *SLOW]
