"""Values that are JSON objects.

The first look is one from_json with the types of the columns. It accepts more than we do, and makes null of what does
not fit. So a record with a value that came out odd, or that from_json itself calls corrupt, is read again as variants,
which tell what really came.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from operator import or_

from pyspark.sql import Column as Expr
from pyspark.sql import functions as F

from liveboard.contract.board import Source
from liveboard.contract.paths import Path, path_text
from liveboard.contract.schema import Column
from liveboard.pipeline.avro_schema import AvroSchemas
from liveboard.pipeline.fields import exact, field_of, is_wrong, read_type
from liveboard.pipeline.folding import folded
from liveboard.pipeline.formats import Format, Rule, is_text, shown, text_of
from liveboard.pipeline.shape import VARIANT, Shape, fields_text, shape_of, variant_at

# from_json accepts more than we do. These options and the checks below reject what it would accept.
# NaN is read as a number so that the reason can name its field.
_OPTIONS = {
    "mode": "PERMISSIVE",
    "columnNameOfCorruptRecord": "corrupt",
    "allowSingleQuotes": "false",
    "allowNonNumericNumbers": "true",
}


class JsonFormat(Format):
    """JSON objects in UTF-8."""

    def __init__(self, source: Source, first: Expr, second: Expr, schemas: AvroSchemas) -> None:
        super().__init__(source, first, second, schemas)
        self._shape = shape_of([(column.steps, read_type(column)) for column in self.columns])
        # A column that is the whole document: then all the others are taken from the same variant.
        self._is_whole = self._shape.type == VARIANT
        self._is_flat = not self._is_whole and all(
            not shape.fields and not shape.element and not shape.is_mixed for shape in self._shape.fields.values()
        )

    def can_be_read(self) -> Expr:
        """Text in UTF-8."""
        return is_text(F.col("value"))

    def look(self) -> Expr:
        """The document by the types of the columns. What does not fit is null, or odd: see `Field.odd`."""
        return self._read(self._shape.type)

    def look_again(self) -> Expr | None:
        """The document without types in mind."""
        if self._is_whole:
            return None
        odd = folded(or_, [self._is_corrupt(), *(self._odd(column) for column in self.columns)])
        variants = {name: Shape(VARIANT) for name in self._shape.fields}
        return F.when(odd, self._read(f"struct<{fields_text(variants)}>"))

    def has_row(self) -> Expr:
        """Whether it is an object."""
        row = self._row_of(self.first)
        return F.schema_of_variant(row).startswith("OBJECT") if self._is_whole else row.isNotNull()

    def unreadable(self) -> list[Rule]:
        """Values that are no object."""
        if self._is_whole:
            return self.no_document(~F.coalesce(self.has_row(), F.lit(False)))
        return self.no_document()

    def no_document(self, no_object: Expr | None = None) -> list[Rule]:
        """No text, no JSON, or JSON of another kind."""
        no_object = self.first["row"].isNull() if no_object is None else no_object
        no_object = no_object | self.first["end"].isNull()
        return [
            Rule(self.first.isNull(), lambda: F.lit("value: expected UTF-8 text, found bytes that are not")),
            Rule(
                no_object,
                lambda: F.concat(F.lit("value: expected a JSON object, found "), shown(text_of(F.col("value")))),
            ),
        ]

    def wrong(self, columns: Sequence[Column]) -> list[Rule]:
        """Values of another type, also on the way to them, and fields that are there twice."""
        rules: dict[tuple[Path, str], Rule] = {}
        for column in columns:
            for length in range(1, len(column.steps)):
                way, kind = column.steps[:length], "array" if isinstance(column.steps[length], int) else "object"
                rules.setdefault((way, kind), self._way_rule(way, kind))
            rules[column.steps, column.name] = self._column_rule(column)
        if self._is_whole or self.source.on_error == "null":
            return list(rules.values())
        # Elements of an array that no column is made of may be of any type, which from_json calls corrupt.
        repeated = self._is_corrupt() if self._is_flat else self.second["corrupt"].isNotNull()
        why = F.lit("value: expected every field once, found one repeated")
        return [*rules.values(), Rule(repeated, lambda: why)]

    def value(self, column: Column) -> Expr:
        """As it was read at first, or where that is in doubt, as the variant has it."""
        value, inside = self._shape.walk(self._row_of(self.first), column.steps)
        if inside is not None:
            return exact(self._variant(column.steps), column)
        field = field_of(column)
        read = field.converted(value) if field.converted else value
        if not self._is_flat:
            return F.when(self._in_doubt(), exact(self._variant(column.steps), column)).otherwise(read)
        if self.source.on_error == "null" and field.odd and not field.converted:
            return F.when(~is_wrong(self._variant(column.steps), column), read)
        return read

    def _read(self, row: str) -> Expr:
        # from_json stops at the end of the first value and ignores what follows it; inside an object it cannot.
        wrapped = F.concat(F.lit('{"row":'), text_of(F.col("value")), F.lit(',"end":1}'))
        return F.from_json(wrapped, f"row {self._document_type(row)}, end int, corrupt string", _OPTIONS)

    def _document_type(self, row: str) -> str:
        """The type of the document, in which the row is of this type."""
        return row

    def _row_of(self, look: Expr) -> Expr:
        """Where the row is in a look."""
        return look["row"]

    def _is_corrupt(self) -> Expr:
        return self.first["corrupt"].isNotNull()

    def _in_doubt(self) -> Expr:
        return F.lit(False) if self._is_whole else self.second.isNotNull()

    def _odd(self, column: Column) -> Expr:
        """Cheap, and true for every value of a wrong type that from_json accepts (and for some good ones)."""
        value, inside = self._shape.walk(self._row_of(self.first), column.steps)
        odd = field_of(column).odd
        return F.coalesce(odd(value), F.lit(False)) if odd and inside is None else F.lit(False)

    def _variant(self, path: Path) -> Expr:
        """What really came at this place, by the second look; without one, by the first, where that has variants."""
        value, inside = self._shape.walk(self._row_of(self.first), path)
        if self._is_whole:
            return variant_at(value, inside or ())
        name, *more = path
        again = variant_at(self._row_of(self.second)[name], tuple(more))
        return again if inside is None else F.when(self._in_doubt(), again).otherwise(variant_at(value, inside))

    def _looked_at(self, path: Path) -> Expr:
        """Whether there is such a variant."""
        _, inside = self._shape.walk(self._row_of(self.first), path)
        return self._in_doubt() if inside is None else F.lit(True)

    def _way_rule(self, path: Path, expected: str) -> Rule:
        variant = self._variant(path)
        kind = F.schema_of_variant(variant)
        wrong = F.coalesce((kind != "VOID") & ~kind.startswith(expected.upper()), F.lit(False))
        return Rule(
            self._looked_at(path) & wrong, partial(_message, f"{path_text(path)}: expected an {expected}", variant)
        )

    def _column_rule(self, column: Column) -> Rule:
        variant = self._variant(column.steps)
        broken = self._looked_at(column.steps) & is_wrong(variant, column)
        return Rule(broken, partial(_message, f"{column.place}: expected {column.type}", variant))


def _message(expected: str, variant: Expr) -> Expr:
    kind = F.lower(F.regexp_extract(F.schema_of_variant(variant), "^[A-Z]+", 0))
    return F.concat(F.lit(f"{expected}, found "), shown(F.to_json(variant)), F.lit(" ("), kind, F.lit(")"))
