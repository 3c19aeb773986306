"""The schema registry: what it knows of Avro schemas, and why it cannot be asked, in a sentence that names the setting.

It speaks the usual API (`/subjects`, `/schemas/ids`). Nothing of a secret is ever in a sentence.
"""

from __future__ import annotations

import base64
import json
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from http.client import HTTPException
from typing import Any, NamedTuple

from liveboard.config import RegistrySettings
from liveboard.contract.errors import LiveboardError
from liveboard.redirects import NoRedirects

_TIMEOUT_S = 5.0
# Error codes of the API: there is no such subject, version or schema. Any other 404 is from something else.
_MISSING = (40401, 40402, 40403)
_MOST_BYTES = 16 * 1024 * 1024


class RegistryUnavailable(LiveboardError):
    """The registry does not answer us; once the cause is mended, the same question may be answered."""


class Registered(NamedTuple):
    """A schema as the registry has it."""

    id: int
    kind: str
    """AVRO, JSON or PROTOBUF."""
    schema: str
    references: tuple[str, ...] = ()
    """The schemas whose names it uses, each after those that it uses itself."""


def value_subject(topic: str) -> str:
    """The subject under which producers register the schemas of a topic's values, unless they are told otherwise."""
    return f"{topic}-value"


class Registry:
    """Asks a schema registry; each question waits for its answer, a few seconds at most."""

    def __init__(self, settings: RegistrySettings) -> None:
        self.url = settings.url.rstrip("/")
        self._settings = settings

    def count(self, subject: str) -> int:
        """How many versions a subject has."""
        return len(self._ask(f"/subjects/{_quoted(subject)}/versions") or ())

    def versions(self, subject: str) -> dict[int, Registered]:
        """All schemas of a subject, by id; none where the registry knows no such subject."""
        at = f"/subjects/{_quoted(subject)}/versions"
        numbers = self._ask(at) or []
        found = [self._registered(self._ask(f"{at}/{number}"), f"{subject} {number}") for number in numbers]
        return {schema.id: schema for schema in found if schema}

    def schema(self, schema_id: int) -> Registered | None:
        """The schema of an id; None where the registry says that there is none."""
        answer = self._ask(f"/schemas/ids/{schema_id}")
        return self._registered(answer and {**answer, "id": schema_id}, f"schema {schema_id}")

    def _registered(self, answer: Any, what: str) -> Registered | None:
        if not answer:
            return None
        try:
            references = self._references(answer.get("references") or (), {})
            return Registered(int(answer["id"]), answer.get("schemaType", "AVRO"), str(answer["schema"]), references)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise self._not_a_registry(f"an answer about {what} without id and schema") from None

    def _references(self, named: Sequence[Mapping[str, Any]], found: dict[str, None]) -> tuple[str, ...]:
        for reference in named:
            answer = self._ask(f"/subjects/{_quoted(reference['subject'])}/versions/{int(reference['version'])}") or {}
            self._references(answer.get("references") or (), found)
            found[answer["schema"]] = None
        return tuple(found)

    def _ask(self, path: str) -> Any:
        """What it answers; None where it says that there is no such thing."""
        headers = {"Accept": "application/vnd.schemaregistry.v1+json, application/json", **self._login()}
        request = urllib.request.Request(self.url + path, headers=headers)
        expected = f"registry.url: expected a schema registry at {self.url}"
        try:
            context = ssl.create_default_context(cafile=self._settings.ca_file or None)
            opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=context), NoRedirects)
            with opener.open(request, timeout=_TIMEOUT_S) as answer:
                return json.loads(answer.read(_MOST_BYTES))
        except urllib.error.HTTPError as error:
            with error:
                return self._refused(error)
        except urllib.error.URLError as error:
            if isinstance(error.reason, ssl.SSLCertVerificationError):
                raise self._untrusted(error.reason) from None
            late = isinstance(error.reason, TimeoutError)
            found = f"no answer within {_TIMEOUT_S:.0f} s" if late else f"no answer ({error.reason})"
        except TimeoutError:
            found = f"no answer within {_TIMEOUT_S:.0f} s"
        except ValueError:
            raise self._not_a_registry("an answer that is not JSON") from None
        except FileNotFoundError:
            ca_file = self._settings.ca_file
            raise RegistryUnavailable(f"registry.ca_file: expected a PEM file, found no file {ca_file}") from None
        except (OSError, HTTPException) as error:
            found = f"no answer ({error})"
        raise RegistryUnavailable(f"{expected}, found {found}; see that it runs, or set another address")

    def _login(self) -> dict[str, str]:
        settings = self._settings
        if settings.token:
            return {"Authorization": f"Bearer {settings.token.reveal()}"}
        if settings.username:
            login = f"{settings.username}:{settings.password.reveal()}".encode()
            return {"Authorization": f"Basic {base64.b64encode(login).decode()}"}
        return {}

    def _refused(self, error: urllib.error.HTTPError) -> None:
        """Returns where the registry says that there is no such thing; raises in all other cases."""
        if error.code == 404 and _error_code(error) in _MISSING:
            return
        if error.code in (401, 403):
            raise RegistryUnavailable(self._wrong_login(error.code))
        if error.code == 404:
            raise self._not_a_registry("404 from something that is none")
        if 300 <= error.code < 400:
            raise self._not_a_registry(f"a redirect to {error.headers.get('Location')}")
        raise RegistryUnavailable(
            f"registry.url: expected an answer of the registry at {self.url}, found {error.code}; see that it runs"
        )

    def _wrong_login(self, code: int) -> str:
        settings = self._settings
        if settings.token:
            return f"registry.token: expected a token that {self.url} accepts, found it refused ({code}); set another"
        if not settings.username:
            return (
                f"registry.username, registry.password: expected a login, since {self.url} asks for one ({code}), "
                "found none; set them, or registry.token"
            )
        return (
            f"registry.username, registry.password: expected a login that {self.url} accepts, found "
            f"{settings.username!r} refused ({code}); set the right name and password"
        )

    def _not_a_registry(self, found: str) -> RegistryUnavailable:
        return RegistryUnavailable(
            f"registry.url: expected a schema registry at {self.url}, found {found}; set the address under which "
            "/subjects answers"
        )

    def _untrusted(self, error: ssl.SSLCertVerificationError) -> RegistryUnavailable:
        trusted = self._settings.ca_file or "the system's authorities"
        return RegistryUnavailable(
            f"registry.ca_file: expected the authority that signed the certificate of {self.url}, found others in "
            f"{trusted} ({error.verify_message}); set a PEM file with that authority"
        )


def _quoted(subject: str) -> str:
    return urllib.parse.quote(subject, safe="")


def _error_code(error: urllib.error.HTTPError) -> int | None:
    try:
        code: int | None = json.loads(error.read(_MOST_BYTES)).get("error_code")
    except (ValueError, AttributeError, OSError):
        return None
    return code
