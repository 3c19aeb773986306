"""Live tables for business data: Kafka topics, joined as events arrive, on every viewer's screen."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from liveboard.client import connect, connect_async

__all__ = ["__version__", "connect", "connect_async"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    # The client is imported by those who use it, so that every command still answers at once.
    if name in ("connect", "connect_async"):
        from liveboard import client

        return getattr(client, name)
    raise AttributeError(f'module "liveboard" has no attribute "{name}"')
