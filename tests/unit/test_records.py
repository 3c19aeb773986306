"""Lookups in Kafka: a few at a time, and nobody waits for those of another for ever."""

from __future__ import annotations

import asyncio
import threading

import pytest

from liveboard.contract.frames import Code, FrameError
from liveboard.serving.records import Lookups


def test_a_key_that_asks_too_much_is_told_so_and_others_are_answered() -> None:
    async def ask() -> None:
        lookups, going_on = Lookups(), threading.Event()
        waiting = [asyncio.create_task(lookups.run("greedy", going_on.wait)) for _ in range(8)]
        await asyncio.sleep(0)
        with pytest.raises(FrameError) as caught:
            await lookups.run("greedy", going_on.wait)
        assert caught.value.code is Code.TOO_MANY
        other = asyncio.create_task(lookups.run("other", lambda: "answer"))
        await asyncio.sleep(0)
        going_on.set()
        assert await asyncio.gather(*waiting) == [True] * 8
        assert await other == "answer"
        assert await lookups.run("greedy", lambda: "again") == "again"
        lookups.stop()

    asyncio.run(ask())


def test_too_many_lookups_altogether_are_refused() -> None:
    async def ask() -> None:
        lookups, going_on = Lookups(), threading.Event()
        waiting = [asyncio.create_task(lookups.run(f"key {n // 8}", going_on.wait)) for n in range(32)]
        await asyncio.sleep(0)
        with pytest.raises(FrameError) as caught:
            await lookups.run("another", going_on.wait)
        assert caught.value.code is Code.OVERLOADED
        going_on.set()
        await asyncio.gather(*waiting)
        lookups.stop()

    asyncio.run(ask())
