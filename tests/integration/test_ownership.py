"""B35: one owner at a time, on a real broker."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import count
from pathlib import Path

import pytest
from harness import until

from liveboard.contract.errors import LiveboardError
from liveboard.contract.names import Names
from liveboard.kafka.admin import Admin
from liveboard.orchestrator import ownership, standby
from liveboard.orchestrator.ownership import Ownership, OwnershipLost
from liveboard.orchestrator.standby import Standby

pytestmark = pytest.mark.integration

_numbers = count(1)


@pytest.fixture
def names(kafka: str) -> Iterator[Names]:
    names = Names(f"owned-{next(_numbers)}")
    admin = Admin({"bootstrap.servers": kafka})
    admin.create_log(names.owner)
    yield names
    admin.delete([names.owner])


def storage(tmp_path: Path, name: str) -> Path:
    directory = tmp_path / name
    directory.mkdir(exist_ok=True)
    return directory


def test_b35_a_second_owner_is_told_who_has_the_board_and_since_when(kafka: str, names: Names, tmp_path: Path) -> None:
    client = {"bootstrap.servers": kafka}
    with Ownership(client, names, storage(tmp_path, "a")) as first:
        first.check()
        with pytest.raises(LiveboardError) as refused, Ownership(client, names, storage(tmp_path, "b")):
            pass
        sentence = str(refused.value)
        assert sentence.startswith(f"the board '{names.board}' is kept by ")
        assert f":{tmp_path / 'a'} since 20" in sentence
        assert "give this board another name (board.name)" in sentence
        first.check()
    # Given back at its end.
    with Ownership(client, names, storage(tmp_path, "b")) as second:
        second.check()


def test_b35_of_many_that_take_over_at_once_one_does(
    kafka: str, names: Names, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = {"bootstrap.servers": kafka}
    monkeypatch.setattr(ownership, "SILENCE_S", 5.0)
    monkeypatch.setattr(ownership, "_BEAT_S", 600.0)
    with ExitStack() as parts:
        silent = parts.enter_context(Ownership(client, names, storage(tmp_path, "silent")))
        start = threading.Barrier(5)

        def take(number: int) -> Ownership | None:
            taker = Ownership(client, names, storage(tmp_path, f"taker {number}"))
            start.wait(60)
            try:
                return parts.enter_context(taker)
            except LiveboardError:
                return None

        takers: list[Ownership] = []

        def taken() -> bool:
            with ThreadPoolExecutor(5) as pool:
                takers[:] = [taker for taker in pool.map(take, range(5)) if taker]
            return bool(takers)

        until(taken, "a take-over")
        assert len(takers) == 1
        takers[0].check()
        assert takers[0].owner.since > silent.owner.since
        # The one that was silent finds out as soon as it looks.
        with pytest.raises(OwnershipLost, match=rf"kept by .*:{tmp_path}/taker"):
            silent.check()
        # And the one that took over hears that it is still alive.
        assert takers[0].survivor() == ""
        silent.__exit__(OwnershipLost, None, None)
        until(lambda: not takers[0].is_sure() and takers[0].survivor(), "a sign of life")
        assert takers[0].survivor() == silent.owner.name


def test_b35_a_standby_waits_while_the_owner_beats(
    kafka: str, names: Names, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, said, stopping = {"bootstrap.servers": kafka}, list[str](), threading.Event()
    monkeypatch.setattr(standby, "SILENCE_S", 2.0)
    monkeypatch.setattr(ownership, "_BEAT_S", 0.1)

    def wait() -> bool:
        return Standby(client, Admin(client), names, storage(tmp_path, "b")).wait(said.append, stopping)

    with ThreadPoolExecutor(1) as thread:
        with Ownership(client, names, storage(tmp_path, "a")) as first:
            waiting = thread.submit(wait)
            until(lambda: said, "a word")
            assert said[0].startswith(f"standing by: the board '{names.board}' is kept by {first.owner.name} since 20")
            with pytest.raises(TimeoutError):
                waiting.result(3)
        # Given up, it is free at once.
        assert waiting.result(60)
        assert len(said) == 1
        with Ownership(client, names, storage(tmp_path, "a")):
            monkeypatch.setattr(ownership, "_BEAT_S", 600.0)
            assert wait()
            assert f"taking over: nothing has been heard from {first.owner.name} for 2 s" in said
        with Ownership(client, names, storage(tmp_path, "a")):
            stopping.set()
            assert not wait()


def test_b35_a_standby_gets_ready_before_it_takes_over_and_rests_when_it_need_not(
    kafka: str, names: Names, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, said, stopping = {"bootstrap.servers": kafka}, list[str](), threading.Event()
    monkeypatch.setattr(standby, "SILENCE_S", 60.0)
    monkeypatch.setattr(standby, "_DOUBT_S", 0.7)
    monkeypatch.setattr(ownership, "_BEAT_S", 3.0)
    waiting = Standby(client, Admin(client), names, storage(tmp_path, "b"))
    with ThreadPoolExecutor(1) as thread, Ownership(client, names, storage(tmp_path, "a")):
        ended = thread.submit(
            waiting.wait, said.append, stopping, lambda: said.append("ready"), lambda: said.append("resting")
        )
        until(lambda: "ready resting ready" in " ".join(said), lambda: f"the same again, found {said}")
        assert not any("taking over" in word for word in said)
        stopping.set()
        assert not ended.result(60)


def test_b35_the_same_storage_begins_again_at_once(kafka: str, names: Names, tmp_path: Path) -> None:
    client = {"bootstrap.servers": kafka}
    directory = storage(tmp_path, "a")
    with Ownership(client, names, directory) as crashed, Ownership(client, names, directory) as restarted:
        restarted.check()
        assert restarted.owner.id == crashed.owner.id
        with pytest.raises(OwnershipLost):
            crashed.check()
