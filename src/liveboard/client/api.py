"""What the server answers over HTTP."""

from __future__ import annotations

import http.client
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from typing import IO, Any, BinaryIO
from urllib.parse import urlencode

import msgspec

from liveboard.client.address import Address, Unauthorized, Unreachable, untrusted
from liveboard.contract import frames
from liveboard.contract.changelog import Value
from liveboard.contract.control import FIRST_JOIN, control_message
from liveboard.contract.errors import LiveboardError
from liveboard.contract.names import EXPORT_FORMATS
from liveboard.redirects import NoRedirects

_TIMEOUT_S = 60.0
_READ_BYTES = 256 * 1024


class _Tables(msgspec.Struct):
    tables: tuple[frames.TableInfo, ...]


class _Answer(msgspec.Struct):
    columns: tuple[frames.WireColumn, ...]
    rows: list[tuple[Value, ...]]


class _Place(msgspec.Struct):
    partition: int
    offset: int


class _Problem(msgspec.Struct):
    message: str


class _Problems(msgspec.Struct):
    error: _Problem


class Api:
    """Asks one server; every method waits for the answer."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._opener = urllib.request.build_opener(NoRedirects, urllib.request.HTTPSHandler(context=address.tls))

    def tables(self) -> tuple[frames.TableInfo, ...]:
        """The tables that there are."""
        with self._request("/api/tables") as answer:
            try:
                return msgspec.json.decode(self._read(answer, None), type=_Tables).tables
            except msgspec.MsgspecError as error:
                raise Unreachable(f"{self._address.url}: expected a list of tables, found: {error}") from None

    def export(self, asked: frames.Subscribe, format: str, into: BinaryIO) -> None:
        """Writes a whole table, as of one moment, into a file; `asked` has its sort, filter and so on."""
        if format not in EXPORT_FORMATS:
            raise LiveboardError(f'expected a format ({", ".join(EXPORT_FORMATS)}), found "{format}"')
        texts = {"format": format, "search": asked.search, "generation": asked.generation}
        values = {"sort": asked.sort, "filter": asked.filter}
        parameters = {name: text for name, text in texts.items() if text is not None}
        parameters |= {name: msgspec.json.encode(value).decode() for name, value in values.items() if value is not None}
        with self._request(f"/api/tables/{asked.table}/export?{urlencode(parameters)}") as answer:
            while part := self._read(answer, _READ_BYTES):
                into.write(part)

    def query(self, sql: str) -> tuple[tuple[frames.WireColumn, ...], list[tuple[Value, ...]]]:
        """The columns and the rows, as on the wire, that answer a SELECT."""
        with self._request("/api/query", json.dumps({"sql": sql}).encode()) as answer:
            try:
                found = msgspec.json.decode(self._read(answer, None), type=_Answer)
            except msgspec.MsgspecError as error:
                raise Unreachable(f"{self._address.url}: expected columns and rows, found: {error}") from None
        return found.columns, found.rows

    def define_view(self, name: str, sql: str, key: Sequence[str] = ()) -> None:
        """Makes a table of others with a SELECT, or another one of that name."""
        body = json.dumps({"state": {"sql": sql, "key": list(key)}}).encode()
        with self._request(f"/api/views?{urlencode({'kind': 'sql', 'name': name})}", body, "PUT") as answer:
            self._read(answer, None)

    def remove_view(self, name: str) -> None:
        """Takes such a table away; harmless when there is none."""
        with self._request(f"/api/views?{urlencode({'kind': 'sql', 'name': name})}", method="DELETE") as answer:
            self._read(answer, None)

    def control(self, message: Mapping[str, Any]) -> str:
        """Sends a control message; returns its place in the control topic, its key in the table control_raw."""
        with self._request("/api/control", json.dumps(message).encode()) as answer:
            try:
                place = msgspec.json.decode(self._read(answer, None), type=_Place)
            except msgspec.MsgspecError as error:
                raise Unreachable(f"{self._address.url}: expected the message's place, found: {error}") from None
        return f"{place.partition}-{place.offset}"

    def swap(self, topics: Mapping[str, str], join: str | None) -> None:
        """Asks for other topics, by source, and another kind of the board's first join."""
        self.control(control_message(topics, {} if join is None else {FIRST_JOIN: join}))

    def _request(self, path: str, body: bytes | None = None, method: str | None = None) -> IO[bytes]:
        headers = {"Authorization": f"Bearer {self._address.psk.reveal()}", "Content-Type": "application/json"}
        try:
            request = urllib.request.Request(f"{self._address.url}{path}", body, headers, method=method)
            answer: IO[bytes] = self._opener.open(request, timeout=_TIMEOUT_S)
            return answer
        except urllib.error.HTTPError as error:
            with error:
                raise self._refusal(error) from None
        except urllib.error.URLError as error:
            if isinstance(error.reason, ssl.SSLCertVerificationError):
                raise untrusted(self._address.url, error.reason) from None
            raise Unreachable(
                f"{self._address.url}: expected a liveboard server, found none ({error.reason})"
            ) from None
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(f"{self._address.url}: expected a liveboard server, found none ({error!r})") from None

    def _read(self, answer: IO[bytes], size: int | None) -> bytes:
        try:
            return answer.read(size) if size else answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(
                f"{self._address.url}: expected the whole answer, found only a part ({error!r})"
            ) from None

    def _refusal(self, error: urllib.error.HTTPError) -> LiveboardError:
        if error.code == 401:
            return Unauthorized()
        try:
            return LiveboardError(msgspec.json.decode(error.read(), type=_Problems).error.message)
        except (msgspec.MsgspecError, OSError, http.client.HTTPException):
            return Unreachable(f"{self._address.url}: expected a liveboard server, found HTTP status {error.code}")
