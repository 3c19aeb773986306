"""When a stream that dies again and again is given up."""

from __future__ import annotations

from typing import Any, cast

import pytest

from liveboard.backoff import Backoff
from liveboard.orchestrator.running import Running
from liveboard.orchestrator.schemas import Schemas


class Dying:
    """A generation whose stream dies of the same cause at every start."""

    def __init__(self, why: str) -> None:
        self._why = why
        self.starts = 0

    def follow(self, anew: bool) -> None:
        self.starts += 1

    def failure(self) -> str:
        return self._why


class Gone:
    """A generation whose Java was killed."""

    def follow(self, anew: bool) -> None:
        raise ConnectionRefusedError


class Knowing:
    """All schemas are known."""

    waiting, problem = False, ""

    def learn(self, why: str) -> bool:
        return False


@pytest.mark.parametrize(
    ("why", "is_hopeless"),
    [
        ("java.lang.IllegalStateException: the state is of another Spark", True),
        ("Caused by: org.apache.kafka.common.errors.TimeoutException: nobody answers", False),
        (
            "Job aborted due to stage failure: ExecutorLostFailure (executor 1 exited): Command exited with code 137",
            False,
        ),
        ("[CONCURRENT_SCHEDULER_INSUFFICIENT_SLOT] The cluster needs 7 free slots and has 4", False),
    ],
)
def test_b24_only_what_a_checkpoint_cannot_get_over_is_built_anew(
    why: str, is_hopeless: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Backoff, "over", property(lambda self: True))
    generation, said = Dying(why), list[str]()
    kept = Running(
        lambda name: cast(Any, generation), cast(Schemas, Knowing()), said.append, lambda why: why, lambda name: False
    )
    kept.follow("g1")
    while generation.starts < 5 and not kept.hopeless():
        kept.heal()
    assert kept.hopeless() == ({"g1": why} if is_hopeless else {})
    assert all(why in each for each in said)
    assert len(said) >= 3


def test_b24_where_java_is_gone_nothing_is_started_again_in_this_process() -> None:
    kept = Running(lambda name: cast(Any, Gone()), cast(Schemas, Knowing()), print, lambda why: why, lambda name: False)
    with pytest.raises(ConnectionRefusedError):
        kept.follow("g1")
