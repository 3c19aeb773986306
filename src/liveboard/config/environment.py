"""The environment over a configuration document."""

from collections.abc import Mapping
from pathlib import Path

from liveboard.config.document import Document, Key, dotted
from liveboard.config.values import ConfigError, Spec
from liveboard.contract.errors import nearest

PREFIX = "LIVEBOARD_"
CONFIG_VARIABLE = "LIVEBOARD_CONFIG"
FILE_SUFFIX = "_FILE"


def variable(key: Key) -> str:
    """The environment variable that sets a key: LIVEBOARD_ and its words in capitals, joined by "_"."""
    return PREFIX + "_".join(key).upper()


def overlay(document: Document, keys: Mapping[Key, Spec], environ: Mapping[str, str]) -> None:
    """Put what the environment says about the keys over what the document says."""
    for key, spec in keys.items():
        name = variable(key)
        file_name = name + FILE_SUFFIX
        try:
            if spec.secret and file_name in environ:
                if name in environ:
                    raise ConfigError(f"{dotted(key)}: expected one of {name} and {file_name}, found both")
                document.put(key, _content(key, environ[file_name], file_name), file_name)
            elif name in environ:
                value = spec.from_text(environ[name])
                document.put(key, spec.merge(document.get(key), value) if spec.merge else value, name)
        except ConfigError as error:
            document.complain(str(error))


def refuse_unknown(document: Document, keys: Mapping[Key, Spec], environ: Mapping[str, str]) -> None:
    """Note every LIVEBOARD_ variable that sets none of the keys."""
    known = [CONFIG_VARIABLE, *map(variable, keys)]
    known += [variable(key) + FILE_SUFFIX for key, spec in keys.items() if spec.secret]
    for name in sorted(environ):
        if name.startswith(PREFIX) and name not in known:
            document.complain(f"{name}: unknown variable, the nearest known one is {nearest(name, known)}")


def _content(key: Key, path: str, file_name: str) -> str:
    try:
        return Path(path).read_bytes().decode().removesuffix("\n").removesuffix("\r")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
    raise ConfigError(f"{dotted(key)}: expected a file that can be read, found {path}: {reason} ({file_name})")
