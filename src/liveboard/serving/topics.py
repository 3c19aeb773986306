"""Which topics of the cluster a source may read."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from liveboard.kafka.admin import Admin

_OWN = "liveboard"
_INTERNAL = "_"


class Topics:
    """Asks Kafka when somebody wants to know."""

    def __init__(self, client_config: Mapping[str, str], control_topic: str) -> None:
        self._client_config = client_config
        self._control_topic = control_topic

    async def names(self) -> list[str]:
        """In order; without Kafka's own topics and liveboard's. A LiveboardError if Kafka does not answer."""
        return await asyncio.to_thread(self._names)

    def _names(self) -> list[str]:
        known = Admin(self._client_config).partitions()
        return sorted(name for name in known if not name.startswith((_OWN, _INTERNAL)) and name != self._control_topic)
