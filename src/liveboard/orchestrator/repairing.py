"""The repairs of all generations that follow."""

from __future__ import annotations

import time

from msgspec.structs import replace as changed

from liveboard.backoff import Backoff
from liveboard.contract.errors import LiveboardError
from liveboard.orchestrator.repairs import Repairs
from liveboard.orchestrator.running import SPARK_ERRORS
from liveboard.orchestrator.workplace import Workplace
from liveboard.pipeline.generation import reason

_TELL_S = 0.5


class Repairing:
    """Has the generations repaired, and says how many keys wait for it."""

    def __init__(self, work: Workplace) -> None:
        self._work = work
        self._repairs: dict[str, Repairs] = {}
        self._again = Backoff()

    def advance(self) -> None:
        """Does what is to be done now; returns at once."""
        work = self._work
        if work.schemas.waiting:
            return
        for name in work.running.following - self._repairs.keys():
            self._repairs[name] = Repairs(work.running[name], work.plan(name), work.kafka.client_config, work.admin)
        for name, repairs in self._repairs.items():
            if not self._again.over:
                return
            try:
                repairs.advance()
            except ConnectionError:
                raise
            except (LiveboardError, *SPARK_ERRORS) as error:
                if work.schemas.learn(reason(error)):
                    return
                self._again.failed()
                work.log(f"repairing {name}: {work.explain(error)}; trying again")
        self._tell()

    def is_pending(self, name: str) -> bool:
        """Whether keys of the generation wait."""
        return name in self._repairs and self._repairs[name].pending is not None

    def drop(self, name: str) -> None:
        """Ends the connections for the generation; what was not repaired stays asked for."""
        if name in self._repairs:
            self._repairs.pop(name).close()

    def _tell(self) -> None:
        """Keeps the numbers on record while keys wait, now and then, and once more when none does."""
        status = self._work.status
        before = {name: record.repairs for name, record in status.generations.items()}
        pending = {name: self._repairs[name].pending if name in self._repairs else None for name in before}
        if pending == before or (any(pending.values()) and time.monotonic() - self._work.record.kept_at < _TELL_S):
            return
        records = {name: changed(record, repairs=pending[name]) for name, record in status.generations.items()}
        self._work.keep(changed(status, generations=records))
