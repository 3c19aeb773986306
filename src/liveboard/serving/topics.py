"""Which topics of the cluster a source may read."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from liveboard.contract.names import Names, without_boards
from liveboard.kafka.admin import Admin


class Topics:
    """Asks Kafka when somebody wants to know."""

    def __init__(self, client_config: Mapping[str, str], names: Names) -> None:
        self._client_config = client_config
        self._own = names

    async def names(self) -> list[str]:
        """In order; without Kafka's own topics and those of boards. A LiveboardError if Kafka does not answer."""
        return await asyncio.to_thread(self._names)

    def _names(self) -> list[str]:
        return sorted(without_boards(Admin(self._client_config).partitions(), self._own))
