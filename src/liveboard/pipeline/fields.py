"""How the values of each type are read from JSON, and from text alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import Column as Expr
from pyspark.sql import functions as F

from liveboard.contract.schema import Column

_DATE = r"^\d{4}-\d{2}-\d{2}$"
_TIMESTAMP = r"^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(\.\d{1,6})?(Z|[+-]\d{2}:\d{2})?$"
_NUMBER = r"^-?\d{1,40}(\.\d{1,40})?([eE][+-]?\d{1,3})?$"
_BASE64 = r"^[A-Za-z0-9+/]*={0,2}$"
_NOT_QUOTED_FIRST = list('"-+0123456789{[')
_NOT_QUOTED_WORDS = ["true", "false"]
_VARIANT = "variant"
_MICROSECONDS = {"s": 1_000_000, "ms": 1_000, "us": 1}
# The years 1 to 9999, in microseconds: the text of a timestamp has four digits for them.
FIRST_MOMENT, LAST_MOMENT = -62_135_596_800_000_000, 253_402_300_799_999_999


@dataclass(frozen=True)
class Field:
    """How from_json reads the values of one type, and what of that is to be doubted."""

    right: Callable[[Expr, Expr], Expr]
    """Whether a variant is a value of the type; what Spark calls the variant's own type comes first."""
    odd: Callable[[Expr], Expr] | None = None
    """Whether from_json may have made the value of another type; None where it never does. Cheap, and may be wrong."""
    read_as: str = ""
    """What from_json reads instead of the type itself."""
    converted: Callable[[Expr], Expr] | None = None
    """Makes a value of the type from what was read instead; null where it cannot."""
    of_text: Callable[[Expr], Expr] | None = None
    """Makes a value of the type from a text that is not JSON; null where it cannot. None: only JSON will do."""


def field_of(column: Column) -> Field:
    """How the column's values are read."""
    return FIELDS[column.kind.name](column)


def read_type(column: Column) -> str:
    """The type that from_json reads for the column."""
    return field_of(column).read_as or column.kind.spark


def is_wrong(variant: Expr, column: Column) -> Expr:
    """Whether something came for the column that is not null and not of its type."""
    kind = F.schema_of_variant(variant)
    right = field_of(column).right(kind, variant)
    return F.coalesce((kind != "VOID") & ~F.coalesce(right, F.lit(False)), F.lit(False))


def exact(variant: Expr, column: Column) -> Expr:
    """The column's value of what came; null where that is absent, null or wrong."""
    field, type_ = field_of(column), read_type(column)
    read = variant if type_ == _VARIANT else F.try_variant_get(variant, "$", type_)
    value = field.converted(read) if field.converted else read
    return F.when(field.right(F.schema_of_variant(variant), variant), value)


def _of_kind(name: str) -> Callable[[Expr, Expr], Expr]:
    return lambda kind, variant: kind == name


def _fits_int(kind: Expr, variant: Expr) -> Expr:
    return (kind == "BIGINT") & F.try_variant_get(variant, "$", "int").isNotNull()


def _is_finite(kind: Expr, variant: Expr) -> Expr:
    number = F.try_variant_get(variant, "$", "double")
    return kind.rlike("^(BIGINT|DECIMAL|DOUBLE)") & (F.abs(number) < float("inf"))


def _perhaps_unquoted(text: Expr) -> Expr:
    return F.substring(text, 1, 1).isin(_NOT_QUOTED_FIRST) | text.isin(_NOT_QUOTED_WORDS)


def _not_finite(number: Expr) -> Expr:
    return F.isnan(number) | (F.abs(number) == float("inf"))


def _from_text(converted: Callable[[Expr], Expr], kinds: str = "STRING") -> Field:
    """Read as text and converted here: from_json would take more for the type than we do."""

    def right(kind: Expr, variant: Expr) -> Expr:
        return kind.rlike(f"^({kinds})") & converted(F.try_variant_get(variant, "$", "string")).isNotNull()

    def odd(text: Expr) -> Expr:
        return text.isNotNull() & converted(text).isNull()

    return Field(right, odd, "string", converted, converted)


def _date(column: Column) -> Field:
    return _from_text(lambda text: F.when(text.rlike(_DATE), text.try_cast("date")))


def _timestamp(column: Column) -> Field:
    def of_text(text: Expr) -> Expr:
        return F.when(text.rlike(_TIMESTAMP), text.try_cast("timestamp"))

    if not column.unit:
        return _from_text(of_text)

    def of_text_or_number(text: Expr) -> Expr:
        number = F.when(text.rlike(_NUMBER), text.try_cast("decimal(32,6)"))
        since_1970 = F.floor(number * F.lit(_MICROSECONDS[column.unit]))
        moment = F.when(since_1970.between(FIRST_MOMENT, LAST_MOMENT), since_1970.cast("bigint"))
        return F.coalesce(of_text(text), F.timestamp_micros(moment))

    return _from_text(of_text_or_number, "STRING|BIGINT|DECIMAL|DOUBLE")


def _from_variant(of_text: Callable[[Expr], Expr], kinds: str, *, is_text: bool) -> Field:
    """Read as a variant and converted here: as text, from_json would round numbers, or not tell them from texts."""

    def right(kind: Expr, variant: Expr) -> Expr:
        return kind.rlike(f"^({kinds})") & of_text(F.try_variant_get(variant, "$", "string")).isNotNull()

    def converted(variant: Expr) -> Expr:
        value = of_text(F.try_variant_get(variant, "$", "string"))
        return F.when(F.schema_of_variant(variant).rlike(f"^({kinds})"), value)

    def odd(variant: Expr) -> Expr:
        return variant.isNotNull() & ~F.is_variant_null(variant) & converted(variant).isNull()

    return Field(right, odd, _VARIANT, converted, of_text if is_text else None)


def _decimal(column: Column) -> Field:
    precision, scale = column.kind.parameters

    def of_text(text: Expr) -> Expr:
        fits = text.rlike(rf"^-?0*\d{{0,{precision - scale}}}(\.\d{{0,{scale}}}0*)?$")
        value = text.try_cast(column.kind.spark)
        # With an exponent, a number is one that was a double.
        is_same = value.cast("double") == text.try_cast("double")
        return F.when(text.rlike(_NUMBER) & (fits | (text.rlike("[eE]") & is_same)), value)

    return _from_variant(of_text, "STRING|BIGINT|DECIMAL|DOUBLE", is_text=True)


def _json(column: Column) -> Field:
    def converted(variant: Expr) -> Expr:
        return F.when(~F.is_variant_null(variant), F.to_json(variant))

    return Field(lambda kind, variant: F.lit(True), None, _VARIANT, converted)


def _binary(column: Column) -> Field:
    def of_text(text: Expr) -> Expr:
        is_whole = text.rlike(_BASE64) & (F.length(text) % 4 == 0)
        return F.when(is_whole, F.try_to_binary(text, F.lit("base64")))

    return _from_variant(of_text, "STRING", is_text=False)


FIELDS: dict[str, Callable[[Column], Field]] = {
    "string": lambda column: Field(_of_kind("STRING"), _perhaps_unquoted, of_text=lambda text: text),
    "boolean": lambda column: Field(_of_kind("BOOLEAN")),
    "int": lambda column: Field(_fits_int),
    "bigint": lambda column: Field(_of_kind("BIGINT")),
    "double": lambda column: Field(_is_finite, _not_finite),
    "decimal": _decimal,
    "date": _date,
    "timestamp": _timestamp,
    "json": _json,
    "binary": _binary,
}
