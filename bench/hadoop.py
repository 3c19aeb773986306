"""Hadoop on this machine: an HDFS, and a YARN on it, each in processes and directories of its own."""

from __future__ import annotations

import json
import os
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import psutil
import pyspark
from ports import closed_port
from processes import await_until
from standalone import java_home, kill

from liveboard.contract.errors import LiveboardError
from liveboard.install import java, libraries

_PATIENCE_S = 300.0
_INSIDE_PYSPARK = ("hadoop-client-*.jar", "slf4j-api-*.jar", "log4j-*.jar", "*commons-logging-*.jar", "jcl-over-*.jar")
_YARN = "org.apache.hadoop.yarn.server"
# More than there are cores: a stream's tasks mostly wait.
_SLOTS = 24
_SMALL = ["-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
# What Hadoop does with Java that later Javas will not let it do.
_ALLOWED = ["--enable-native-access=ALL-UNNAMED", "--sun-misc-unsafe-memory-access=allow"]


@contextmanager
def hdfs(directory: Path) -> Iterator[str]:
    """The address of one with a name node and a data node."""
    home, details = directory / "hdfs", directory / "hdfs" / "details"
    home.mkdir()
    words = ["-format", "-datanodes", "1", "-nnport", "0", "-writeDetails", str(details)]
    with _running(home, "org.apache.hadoop.test.MiniDFSClusterManager", *words) as lives:
        await_until(lambda: lives() and details.exists() and bool(details.read_text()), "an HDFS", _PATIENCE_S)
        yield f"hdfs://127.0.0.1:{json.loads(details.read_text())['namenode_port']}"


@contextmanager
def yarn(directory: Path, files: str) -> Iterator[dict[str, str]]:
    """Settings of a Spark on one with a resource manager and a node; its files are in the HDFS at the address.

    Spark finds it by the environment variable HADOOP_CONF_DIR.
    """
    home = directory / "yarn"
    for name in ("conf", "manager", "node"):
        (home / name).mkdir(parents=True)
    manager = {name: f"127.0.0.1:{closed_port()}" for name in ("address", "webapp.address", "admin.address")}
    manager |= {f"{name}.address": f"127.0.0.1:{closed_port()}" for name in ("scheduler", "resource-tracker")}
    node = dict.fromkeys(("address", "localizer.address", "webapp.address"), "127.0.0.1:0")
    node |= {"local-dirs": str(home / "local"), "log-dirs": str(home / "logs")}
    node |= {"resource.memory-mb": "8192", "resource.cpu-vcores": str(_SLOTS), "vmem-check-enabled": "false"}
    # This machine's disk may be fuller than YARN likes.
    node |= {"disk-health-checker.max-disk-utilization-per-disk-percentage": "99.9"}
    site = {f"yarn.resourcemanager.{name}": value for name, value in manager.items()}
    site |= {f"yarn.nodemanager.{name}": value for name, value in node.items()}
    site["yarn.scheduler.maximum-allocation-vcores"] = str(_SLOTS)
    # The only one that needs no file of queues.
    site["yarn.resourcemanager.scheduler.class"] = f"{_YARN}.resourcemanager.scheduler.fifo.FifoScheduler"
    _write(home / "conf" / "yarn-site.xml", site)
    _write(home / "conf" / "core-site.xml", {"fs.defaultFS": files})
    told: dict[str, Any] = {"path": [home / "conf"], "JAVA_HOME": str(java_home(home))}
    with (
        _running(home / "manager", f"{_YARN}.resourcemanager.ResourceManager", **told) as manages,
        _running(home / "node", f"{_YARN}.nodemanager.NodeManager", **told) as works,
        patch.dict(os.environ, HADOOP_CONF_DIR=str(home / "conf")),
    ):
        address = manager["webapp.address"]
        await_until(lambda: manages() and works() and _nodes(address) == 1, "a node of YARN", _PATIENCE_S)
        # Otherwise Spark would send its own 400 MB to HDFS at every start.
        spark = Path(pyspark.__file__).parent / "jars"
        yield {"spark.yarn.jars": f"local:{spark}/*", "spark.yarn.am.memory": "512m"}


def _write(file: Path, settings: Mapping[str, str]) -> None:
    properties = "".join(f"<property><name>{k}</name><value>{v}</value></property>" for k, v in settings.items())
    file.write_text(f"<configuration>{properties}</configuration>")


def _nodes(address: str) -> int:
    try:
        with urllib.request.urlopen(f"http://{address}/ws/v1/cluster/metrics") as answer:
            return int(json.load(answer)["clusterMetrics"]["activeNodes"])
    except (urllib.error.URLError, OSError):
        return 0


@contextmanager
def _running(
    home: Path, main: str, *words: str, path: Sequence[Path] = (), **environment: str
) -> Iterator[Callable[[], bool]]:
    """A process whose working directory is `home`; yields what tells that it lives, or else raises what it said."""
    log = home / "log"
    command = [str(java.executable()), *_SMALL, *_ALLOWED, "-cp", _class_path(path), main, *words]
    with log.open("wb") as output:
        process = psutil.Popen(
            command,
            cwd=home,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )

    def lives() -> bool:
        if process.poll() is not None:
            raise LiveboardError(f"{main} ended: {log.read_text()[-2000:]}")
        return True

    try:
        yield lives
    finally:
        kill(process)


def _class_path(first: Sequence[Path]) -> str:
    inside = Path(pyspark.__file__).parent / "jars"
    found = [*libraries.jars_of(Path(__file__).with_name("hadoop.xml"), print)]
    found += [jar for pattern in _INSIDE_PYSPARK for jar in sorted(inside.glob(pattern))]
    return os.pathsep.join(map(str, (*first, *found)))
