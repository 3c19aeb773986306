"""What becomes of control messages when they are heard: pure functions of the status document."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from msgspec.structs import replace as changed

from liveboard.contract.board import Wiring
from liveboard.contract.errors import LiveboardError
from liveboard.contract.status import BoardStatus, Request
from liveboard.kafka.trouble import KafkaUnavailable
from liveboard.orchestrator.control import Message
from liveboard.orchestrator.generations import requested

APPLIED, BUILDING, FAILED = "applied", "building", "failed"
IGNORED, REJECTED, SUPERSEDED = "ignored", "rejected", "superseded"


@dataclass(frozen=True)
class Verdict:
    """What became of a control message, for now or for good."""

    message: Message
    word: str
    reason: str = ""


def heard(
    status: BoardStatus, now: Wiring, messages: Sequence[Message], judge: Callable[[Message, Wiring], Wiring]
) -> tuple[BoardStatus, list[Verdict]]:
    """The document after the messages, which come oldest first, and a verdict on each.

    `judge` tells what a message makes of the wiring before it, which for the first is `now`. What they make of it
    together is carried out, as the newest one. A KafkaUnavailable is no verdict and goes to the caller.
    """
    verdicts: list[Verdict] = []
    valid: list[tuple[Message, Wiring]] = []
    for message in messages:
        try:
            now = judge(message, now)
            valid.append((message, now))
        except KafkaUnavailable:
            raise
        except LiveboardError as error:
            verdicts.append(Verdict(message, REJECTED, str(error)))
    for message, _ in valid[:-1]:
        verdicts.append(Verdict(message, SUPERSEDED, f"by {valid[-1][0].place}"))
    if valid:
        status, more = _asked(status, *valid[-1])
        verdicts += more
    judged = {str(message.partition): message.offset + 1 for message in messages}
    return changed(status, control={**status.control, **judged}), verdicts


def on_request(status: BoardStatus, word: str, reason: str = "") -> list[Verdict]:
    """A verdict on the message that is being carried out, if there is one."""
    request = status.request
    if request is None:
        return []
    message = Message(request.partition, request.offset, request.ts, request.message.encode())
    return [Verdict(message, word, reason)]


def _asked(status: BoardStatus, message: Message, wiring: Wiring) -> tuple[BoardStatus, list[Verdict]]:
    live = status.generations.get(status.live or "")
    if status.request and status.request.wiring == wiring:
        return status, [Verdict(message, IGNORED, "this wiring is being built already")]
    verdicts = on_request(status, SUPERSEDED, f"by {message.place}")
    if live and live.wiring == wiring:
        verdicts.append(Verdict(message, IGNORED, "this wiring is live already"))
    else:
        verdicts.append(Verdict(message, BUILDING))
    request = Request(wiring, message.partition, message.offset, message.text or "", message.ts)
    return requested(status, request), verdicts
