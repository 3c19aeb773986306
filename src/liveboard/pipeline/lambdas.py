"""Names for the variables of lambdas that are the same in every query.

PySpark numbers these variables on for as long as its process lives, and Spark writes their names into the code that it
generates. So the code of a generation would differ from that of the one before, if only in these names. Spark would
compile it again, and Java would begin anew to find out what of it is worth compiling well.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from pyspark import SparkContext
from pyspark.sql import Column
from pyspark.sql.functions import builtin

_create = builtin._create_lambda


class _Nesting(threading.local):
    """How many lambdas are being made inside of each other."""

    depth = 0


_nesting = _Nesting()


def name_by_nesting() -> None:
    """Has PySpark name the variables of a lambda by how many others it is made in; to be called before any is made.

    A lambda that was made earlier can be put inside of another one that has the same name. Then the name means the
    inner variable, as it should: the outer one did not exist yet when the inner lambda was made.
    """
    vars(builtin)["_create_lambda"] = _create_lambda
    vars(builtin)["_unresolved_named_lambda_variable"] = _variable


def _create_lambda(function: Callable[..., Column]) -> Any:
    _nesting.depth += 1
    try:
        return _create(function)
    finally:
        _nesting.depth -= 1


def _variable(name: str) -> Column:
    spark: Any = getattr(SparkContext._jvm, "org.apache.spark.sql")
    origin = spark.catalyst.trees.CurrentOrigin.get()
    return Column(spark.Column(spark.internal.UnresolvedNamedLambdaVariable(f"{name}_{_nesting.depth}", origin)))
