"""What the commands `tables` and `export` ask of a running server."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from liveboard.client.address import Address, address
from liveboard.client.api import Api
from liveboard.client.subscription import DEFAULT_WINDOW, ask
from liveboard.config import ServerSettings
from liveboard.contract.names import EXPORT_FORMATS
from liveboard.errors import LiveboardError

_TEXTS = ("csv", "json")
_ANY_HOST = {"0.0.0.0": "127.0.0.1", "::": "::1"}


def server_address(server: ServerSettings, url: str | None, key: str | None) -> Address:
    """The server that is meant: the given one, or that of the settings."""
    if url is None and not server.port:
        raise LiveboardError("--url: expected the address of the server, because server.port is 0, found nothing")
    host = _ANY_HOST.get(server.host, server.host)
    configured = f"http://[{host}]:{server.port}" if ":" in host else f"http://{host}:{server.port}"
    return address(url or configured, key or server.psk)


def table_lines(where: Address) -> Iterator[str]:
    """Every table in a line: its name, how many rows it has, its columns."""
    tables = Api(where).tables()
    width = max((len(table.name) for table in tables), default=0)
    for table in tables:
        columns = ", ".join(f"{column.name} {column.type}" for column in table.columns)
        yield f"{table.name:{width}}  {table.rows:>11,} rows  {columns}"


def export(where: Address, table: str, format: str | None, output: Path | None) -> None:
    """Writes a table to the file, all of it or nothing, or to stdout; the format is that of the file's name, or csv."""
    suffix = output.suffix.removeprefix(".").lower() if output else ""
    format = format or (suffix if suffix in EXPORT_FORMATS else "csv")
    asked = ask(table, DEFAULT_WINDOW, None, None, None, None)
    if output is None:
        if format not in _TEXTS and sys.stdout.isatty():
            raise LiveboardError(f"--output: expected a file, because a terminal cannot show {format}, found nothing")
        Api(where).export(asked, format, sys.stdout.buffer)
        sys.stdout.flush()
        return
    part = output.with_name(f"{output.name}.part")
    try:
        with part.open("wb") as file:
            Api(where).export(asked, format, file)
        part.replace(output)
    except OSError as error:
        raise LiveboardError(f"--output: expected to write {output}, found: {error.strerror}") from None
    finally:
        part.unlink(missing_ok=True)
