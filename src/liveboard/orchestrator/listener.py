"""Hears control messages, and tells what becomes of them."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace as changed

from liveboard.backoff import Backoff
from liveboard.contract.board import Wiring
from liveboard.contract.control import judge
from liveboard.contract.errors import LiveboardError
from liveboard.kafka import trouble
from liveboard.kafka.trouble import KafkaUnavailable
from liveboard.orchestrator import hearing
from liveboard.orchestrator.control import Message
from liveboard.orchestrator.generations import target
from liveboard.orchestrator.workplace import Workplace


class ControlListener:
    """Puts on record what is asked for, and a verdict on every message."""

    def __init__(self, work: Workplace) -> None:
        self._work = work
        self._unheard: list[Message] = []
        self._again = Backoff()
        self._problem = ""

    def hear(self, messages: Sequence[Message]) -> None:
        """Judges the messages; while Kafka does not answer, they wait."""
        self._unheard += messages
        if not self._unheard or not self._again.over:
            return
        status = self._work.status
        try:
            status, verdicts = hearing.heard(status, target(status, self._work.board), self._unheard, self._judge)
        except KafkaUnavailable as error:
            self._again.failed()
            return self._work.log(str(error))
        self._unheard.clear()
        for verdict in verdicts:
            self._work.record.keep_verdict(verdict)
            if verdict.word == hearing.REJECTED:
                self._work.log(f"rejected control message {verdict.message.place}: {verdict.reason}")
            elif verdict.word == hearing.BUILDING and status.request:
                self._work.log(f"applying control: {described(status.request.wiring, ', ')}")
        self._work.keep(status)

    def tell_problem(self, problem: str) -> None:
        """Says it while control messages cannot be read, and no longer."""
        if problem != self._problem:
            self._work.log(problem or "control messages can be read again")
            status = self._work.status
            message = problem if problem or status.message == self._problem else status.message
            self._problem = problem
            self._work.keep(changed(status, message=message))

    def tell_request(self, word: str, reason: str = "") -> None:
        """A verdict on the message that is being carried out, if there is one."""
        for verdict in hearing.on_request(self._work.status, word, reason):
            self._work.record.keep_verdict(verdict)

    def _judge(self, message: Message, now: Wiring) -> Wiring:
        wiring = judge(message.value, self._work.board, now, self._work.names)
        topics = self._work.admin.require(wiring.topics.values())
        if refused := self._work.admin.unreadable(topics):
            raise LiveboardError(trouble.permission(refused))
        return wiring


def described(wiring: Wiring, separator: str) -> str:
    """A wiring in one line of the log."""
    topics = [f"{source}='{topic}'" for source, topic in wiring.topics.items()]
    return separator.join([*topics, *[f"join='{how}'" for how in list(wiring.joins.values())[:1]]])
