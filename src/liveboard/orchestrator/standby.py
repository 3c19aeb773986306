"""Waits for its turn beside a board's owner, and is there when that one falls silent."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from liveboard.config.storage import storage_id
from liveboard.contract.errors import LiveboardError
from liveboard.contract.names import Names
from liveboard.kafka.admin import Admin, total
from liveboard.kafka.reader import ChangelogReader
from liveboard.orchestrator.ownership import SILENCE_S, Holder, decoded, described, held, now_s

_LOOK_S = 0.3
# After so many beats that did not come, the owner is most likely gone.
_DOUBT_S = 2.5
# Where one look takes so long, it was Kafka that did not answer, or this machine that slept: nothing was heard then.
_SLOW_S = 2.0


class Standby:
    """Hears the owner of a board, and tells when it can be replaced.

    Silence counts only while Kafka answers us: nobody is replaced because Kafka was away from everyone.
    """

    def __init__(self, client_config: Mapping[str, str], admin: Admin, names: Names, directory: Path) -> None:
        self._client_config = client_config
        self._admin = admin
        self._names = names
        self._me = storage_id(directory)
        self._holder: Holder | None = None
        self._next = 0

    def wait(
        self,
        log: Callable[[str], None],
        stopping: threading.Event,
        get_ready: Callable[[], None] = lambda: None,
        rest: Callable[[], None] = lambda: None,
    ) -> bool:
        """Returns when the board can be claimed, or False when `stopping` is set before; says once who has it.

        `get_ready` is called when that is likely to come, and `rest` when the owner is heard after all.
        """
        said, is_ready = "", False
        silent_since = looked = now_s()
        with ChangelogReader(self._client_config, [self._names.owner]) as reader:
            while not stopping.wait(_LOOK_S):
                before, heard, looked = looked, self._hears(reader), now_s()
                if heard or looked - before > _SLOW_S:
                    silent_since = looked
                    if is_ready:
                        rest()
                        is_ready = False
                elif self._holder is None or self._holder.said.owner == self._me:
                    return True
                elif looked - silent_since >= SILENCE_S:
                    log(f"taking over: nothing has been heard from {self._holder.said.name} for {SILENCE_S:.0f} s")
                    return True
                elif looked - silent_since >= _DOUBT_S and not is_ready:
                    get_ready()
                    is_ready = True
                if self._holder and self._holder.said.run != said:
                    said = self._holder.said.run
                    log(f"standing by: {described(self._names, self._holder, self._holder.heard_ms)}")
        return False

    def _hears(self, reader: ChangelogReader) -> bool:
        """Whether the owner has said something, or may have, since we cannot read the topic to its end."""
        place = {self._names.owner: 1}
        try:
            begin, end = (total(self._admin.offsets(place, where)) for where in ("earliest", "latest"))
        except LiveboardError:
            return True
        heard = False
        for change in reader.read(_LOOK_S):
            self._next = change.offset + 1
            if change.value:
                saying = decoded(change.value)
                self._holder = held(self._holder, saying, change.timestamp_ms)
                heard |= self._holder is not None and self._holder.said.run == saying.run
        return heard or (self._next < end and begin < end)
