"""Where Kafka answers, also where the embedded broker chose its port itself."""

import socket

from liveboard.config import Settings
from liveboard.contract.errors import LiveboardError

_FILE = "kafka.address"
_CONNECT_TIMEOUT_S = 3.0


def bootstrap(settings: Settings) -> str:
    """The bootstrap servers; of the embedded broker, where the last `up` or `broker` started it."""
    if not settings.kafka.embedded:
        return settings.kafka.bootstrap_servers
    if settings.kafka.port:
        return f"127.0.0.1:{settings.kafka.port}"
    try:
        return (settings.storage.dir / _FILE).read_text("ascii").strip()
    except OSError:
        raise LiveboardError(
            "kafka.port: expected an embedded broker that has chosen its port, since it is 0, found none in "
            f"{settings.storage.dir}; start one with `liveboard up` or `liveboard broker`"
        ) from None


def remember(settings: Settings, address: str) -> None:
    """Lets `bootstrap` find the embedded broker."""
    (settings.storage.dir / _FILE).write_text(f"{address}\n", "ascii")


def reachable(servers: str) -> str:
    """The same servers, once one of them takes connections; an error in seconds if none does."""
    reason = ""
    for server in servers.split(","):
        host, _, port = server.strip().rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), _CONNECT_TIMEOUT_S).close()
            return servers
        except OSError as error:
            reason = error.strerror or str(error)
    raise LiveboardError(
        f"kafka.bootstrap_servers: expected a Kafka broker at {servers}, found none ({reason}); start it, "
        "for example with `liveboard up`, or set another address"
    )
