"""Configuration files in the hands of a test."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from liveboard.config import ConfigError, Settings, load
from liveboard.config.environment import variable

Raw = dict[str, Any]


def toml(tables: Mapping[str, Any], at: str = "") -> str:
    """The tables as TOML."""
    values = {key: value for key, value in tables.items() if not isinstance(value, Mapping)}
    lines = [f"[{at}]"] if at else []
    lines += [f"{toml_string(key)} = {toml_value(value)}" for key, value in values.items()]
    for key, value in tables.items():
        if isinstance(value, Mapping):
            lines.append(toml(value, f"{at}.{toml_string(key)}" if at else toml_string(key)))
    return "\n".join(lines) + "\n"


def toml_value(value: Any) -> str:
    return toml_string(value) if isinstance(value, str) else json.dumps(value)


def toml_string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def leaves(tables: Mapping[str, Any], at: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key, value in tables.items():
        if isinstance(value, Mapping) and (*at, key) != ("spark", "conf"):
            yield from leaves(value, (*at, key))
        else:
            yield (*at, key), value


def environment(raw: Raw) -> dict[str, str]:
    return {variable(key): toml(v) if isinstance(v, dict) else str(v) for key, v in leaves(raw)}


def setting(loaded: Settings, key: tuple[str, ...]) -> Any:
    value: Any = loaded
    for word in key:
        value = value[word] if isinstance(value, Mapping) else getattr(value, word)
    return value


class File:
    """A configuration file of the test's."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def load(self, content: str | Raw, environ: Mapping[str, str] = MappingProxyType({})) -> Settings:
        """The settings of a file with this content, and of these variables."""
        self.path.write_text(content if isinstance(content, str) else toml(content), encoding="utf-8")
        return load(self.path, environ)

    def problems(self, content: str | Raw, environ: Mapping[str, str] = MappingProxyType({})) -> list[str]:
        """What is said of such a file, which must be wrong."""
        with pytest.raises(ConfigError) as caught:
            self.load(content, environ)
        return str(caught.value).replace(str(self.path), "FILE").splitlines()
