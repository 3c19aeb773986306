"""One schema for all paths of a source, so that from_json reads each document once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import Column as Expr
from pyspark.sql import functions as F

from liveboard.contract.paths import Path

VARIANT = "variant"


@dataclass(frozen=True)
class Shape:
    """What is read at one place of the document, and inside of it."""

    type: str
    """As Spark's schemas write it."""
    is_mixed: bool = False
    """Whether columns need it in more than one way. Then it is read as a variant, and they look into that."""
    fields: Mapping[str, Shape] = field(default_factory=dict)
    element: Shape | None = None

    def walk(self, value: Expr, path: Path) -> tuple[Expr, Path | None]:
        """What has been read at the path. If it is a variant that columns share: that, and the way on inside of it."""
        shape = self
        for number, step in enumerate(path):
            if shape.is_mixed:
                return value, path[number:]
            if isinstance(step, int):
                # Null where the array is shorter; `value[step]` would fail.
                value, shape = F.get(value, F.lit(step)), shape.element or shape
            else:
                value, shape = value[step], shape.fields[step]
        return value, () if shape.is_mixed else None


def shape_of(leaves: Sequence[tuple[Path, str]]) -> Shape:
    """The shape that has all these types at the ends of their paths."""
    ends = {type_ for path, type_ in leaves if not path}
    names: dict[str, list[tuple[Path, str]]] = {}
    elements: list[tuple[Path, str]] = []
    for path, type_ in leaves:
        if path and isinstance(path[0], str):
            names.setdefault(path[0], []).append((path[1:], type_))
        elif path:
            elements.append((path[1:], type_))
    if len(ends) + bool(names) + bool(elements) > 1:
        return Shape(VARIANT, is_mixed=True)
    if elements:
        element = shape_of(elements)
        # One element of another type would leave the others unread.
        return Shape(f"array<{element.type}>", element=element)
    if names:
        fields = {name: shape_of(inside) for name, inside in names.items()}
        return Shape(f"struct<{fields_text(fields)}>", fields=fields)
    return Shape(ends.pop())


def fields_text(fields: Mapping[str, Shape]) -> str:
    """The fields of a struct as Spark's schemas write them."""
    return ", ".join(f"{_quoted(name)} {shape.type}" for name, shape in fields.items())


def variant_path(path: Path) -> str:
    """The path as Spark looks into variants."""
    return "$" + "".join(
        f"[{step}]" if isinstance(step, int) else f'["{step}"]' if set(step) & set(".[") else f".{step}"
        for step in path
    )


def variant_at(variant: Expr, path: Path) -> Expr:
    """What is in the variant at the path; null where there is no such place."""
    return F.try_variant_get(variant, variant_path(path), VARIANT) if path else variant


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
