"""What the plots draw, found among the kept figures by the names of their measures; needs nothing but Python."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_STEP = re.compile(r"first minute, (?P<begin>\d+) to (?P<end>\d+) s, (?P<label>p\d+), against (?P<peer>.+)")
_LATENCY = re.compile(
    r"keys, (?P<label>p\d+) at (?P<rate>[\d,]+)/s, (?P<keys>[\d,]+) keys? of (?P<per_key>[\d,]+), (?P<join>[\w-]+)"
)
_BUILDS = re.compile(r"keys, build, (?P<keys>[\d,]+) keys?, (?P<join>[\w-]+)")

BUILD = "seconds of a build"

Lines = dict[str, dict[str, dict[float, float]]]
"""What is compared, to the name of its line, to where a point is, to its value."""


def first_minute(run: Mapping[str, Any]) -> Lines:
    """By system and percentile: the middle of every few seconds, to milliseconds."""
    lines: Lines = {}
    for row in run["results"]:
        if found := _STEP.fullmatch(row["measure"]):
            middle = (int(found["begin"]) + int(found["end"])) / 2
            for system, value in (("liveboard", row["liveboard"]), (found["peer"], row["deephaven"])):
                lines.setdefault(system, {}).setdefault(found["label"], {})[middle] = value
    return lines


def keys(run: Mapping[str, Any]) -> dict[str, Lines]:
    """By what was measured, then by join and percentile: the number of keys of as many records, to what it took."""
    parts: dict[str, Lines] = {}
    for row in run["results"]:
        if found := _LATENCY.fullmatch(row["measure"]):
            # Others have a shorter history, and not only other keys.
            if _number(found["keys"]) * _number(found["per_key"]) != run["sizes"]["keys_records"]:
                continue
            part, label = f"ms to the changelog, {found['rate']} events/s", found["label"]
        elif found := _BUILDS.fullmatch(row["measure"]):
            part, label = BUILD, "build"
        else:
            continue
        line = parts.setdefault(part, {}).setdefault(found["join"], {}).setdefault(label, {})
        line[_number(found["keys"])] = row["liveboard"]
    return parts


def _number(text: str) -> int:
    return int(text.replace(",", ""))
