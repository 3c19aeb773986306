"""B35: who keeps a board, after any records in any order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from liveboard.orchestrator.ownership import SILENCE_S, Holder, Saying, held

SILENCE_MS = int(SILENCE_S * 1000)


def said(what: str, owner: str, run: str = "1") -> Saying:
    return Saying(what, owner, owner + run, owner)  # type: ignore[arg-type]


def after(*records: tuple[int, Saying]) -> Holder | None:
    holder = None
    for at_ms, record in records:
        holder = held(holder, record, at_ms)
    return holder


def keeper(*records: tuple[int, Saying]) -> str:
    holder = after(*records)
    return holder.said.run if holder else ""


def test_b35_the_first_claim_counts_and_the_next_only_after_a_silence() -> None:
    a, b = said("claim", "a"), said("claim", "b")
    assert keeper((0, a), (0, b)) == "a1"
    assert keeper((0, a), (SILENCE_MS - 1, b)) == "a1"
    assert keeper((0, a), (SILENCE_MS, b)) == "b1"
    assert keeper((0, a), (SILENCE_MS - 1, said("beat", "a")), (SILENCE_MS, b)) == "a1"


def test_b35_of_two_that_take_over_at_once_the_first_does() -> None:
    assert keeper((0, said("claim", "a")), (SILENCE_MS, said("claim", "b")), (SILENCE_MS, said("claim", "c"))) == "b1"


def test_b35_who_was_replaced_cannot_beat_its_way_back() -> None:
    records = [(0, said("claim", "a")), (SILENCE_MS, said("claim", "b")), (SILENCE_MS + 1, said("beat", "a"))]
    assert keeper(*records) == "b1"
    assert keeper(*records, (SILENCE_MS + 2, said("release", "a"))) == "b1"


def test_b35_the_same_storage_begins_again_at_once_and_whoever_stops_leaves_it_free() -> None:
    assert keeper((0, said("claim", "a")), (1, said("claim", "a", "2"))) == "a2"
    assert keeper((0, said("claim", "a")), (1, said("release", "a")), (2, said("claim", "b"))) == "b1"


_SAYINGS = st.tuples(st.sampled_from(["claim", "beat", "release"]), st.sampled_from("abc"), st.sampled_from("12")).map(
    lambda parts: said(*parts)
)
_STEPS = st.lists(st.tuples(st.integers(0, SILENCE_MS * 2), _SAYINGS), max_size=30)


@given(_STEPS)
def test_b35_nobody_takes_a_board_from_an_owner_that_is_heard(steps: list[tuple[int, Saying]]) -> None:
    holder, now, heard = None, 0, {"a": 0, "b": 0, "c": 0}
    for pause, record in steps:
        now += pause
        before, holder = holder, held(holder, record, now)
        if before and holder and holder.said.owner != before.said.owner:
            assert now - before.heard_ms >= SILENCE_MS
            assert record.what == "claim"
        if holder and holder.said.run == record.run:
            assert holder.heard_ms == now
        heard[record.owner] = now
