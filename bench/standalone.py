"""A standalone Spark cluster on this machine: a master and workers, each a process with directories of its own."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil
import pyspark
from processes import await_until

from liveboard.install import java, libraries
from liveboard.pipeline.driver import MODULE_OPTIONS, class_path

_HOME = Path(pyspark.__file__).parent
_PATIENCE_S = 600.0
_DEPLOY = "org.apache.spark.deploy"
# A process of the cluster needs no more, and does not run long enough for Java's second compiler.
_SMALL = ["-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dspark.master.rest.enabled=false"]
_LAUNCHER = """\
#!/bin/sh
# Spark asks every Java of a cluster for a module that the one from PyPI does not have.
left=$#
while [ "$left" -gt 0 ]; do
  case $1 in --add-modules=jdk.incubator.vector) ;; *) set -- "$@" "$1" ;; esac
  shift
  left=$((left - 1))
done
exec {java} "$@"
"""


class Cluster:
    """A master that can be restarted, and workers that can be killed and added; nothing of it is left at the end."""

    def __init__(self, directory: Path, cores: int = 8) -> None:
        self._directory = directory
        self._cores = cores
        self._processes: list[psutil.Popen] = []
        self._java_home = java_home(directory)
        self.address = self._start_master("master", port="0")

    def add_worker(self) -> psutil.Process:
        """One more worker, which the master knows."""
        name = f"worker{len(self._processes)}"
        words = ["--host", "127.0.0.1", "--cores", str(self._cores), "--memory", "2g"]
        words += ["--work-dir", str(self._directory / name / "work"), self.address]
        self._said(self._start(name, f"{_DEPLOY}.worker.Worker", *words), "Successfully registered with master")
        return self._processes[-1]

    def kill_master(self) -> None:
        """kill -9 of the master alone."""
        kill(self._master)

    def start_master(self) -> None:
        """Another one at the same address, which knows workers and applications from the files of the one before."""
        self._start_master(f"master{len(self._processes)}", port=self.address.rpartition(":")[2])

    def close(self) -> None:
        """Ends it with all executors."""
        for process in reversed(self._processes):
            kill(process)

    def _start_master(self, name: str, port: str) -> str:
        known = {"recoveryMode": "FILESYSTEM", "recoveryDirectory": str(self._directory / "known")}
        options = [f"-Dspark.deploy.{key}={value}" for key, value in known.items()]
        log = self._start(name, f"{_DEPLOY}.master.Master", "--host", "127.0.0.1", "--port", port, options=options)
        self._master = self._processes[-1]
        return self._said(log, r"Starting Spark master at (spark://\S+)")

    def _start(self, name: str, main: str, *words: str, options: Sequence[str] = ()) -> Path:
        directory = self._directory / name
        directory.mkdir()
        log = directory / "log"
        environment = {
            **os.environ,
            "JAVA_HOME": str(self._java_home),
            "SPARK_HOME": str(_HOME),
            # What Spark's scripts would find out.
            "SPARK_SCALA_VERSION": "2.13",
            "SPARK_LOCAL_DIRS": str(directory / "scratch"),
        }
        # That of the driver, whose cache makes this start faster too.
        java_options = [
            *_SMALL,
            *options,
            *MODULE_OPTIONS,
            *java.cached(libraries.cache("spark")),
            "-cp",
            class_path({}),
        ]
        with log.open("wb") as output:
            self._processes.append(
                psutil.Popen(
                    [str(java.executable()), *java_options, main, "--webui-port", "0", *words],
                    cwd=directory,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                )
            )
        return log

    @staticmethod
    def _said(log: Path, pattern: str) -> str:
        found: list[str] = []

        def look() -> bool:
            found[:] = [match[match.re.groups] for match in re.finditer(pattern, log.read_text())]
            return bool(found)

        await_until(look, f"{pattern} in {log}", _PATIENCE_S)
        return found[0]


def java_home(directory: Path) -> Path:
    """What JAVA_HOME has to be for all that Spark starts on a cluster."""
    home = directory / "java"
    launcher = home / "bin" / "java"
    launcher.parent.mkdir(parents=True)
    launcher.write_text(_LAUNCHER.format(java=shlex.quote(str(java.executable()))))
    launcher.chmod(0o755)
    return home


def kill(process: psutil.Process) -> None:
    """kill -9 of a worker and of the executors on it, as when its machine is gone."""
    family = [process, *process.children(recursive=True)] if process.is_running() else []
    for each in family:
        each.kill()
    psutil.wait_procs(family)


@contextmanager
def cluster(directory: Path, workers: int) -> Iterator[tuple[Cluster, list[psutil.Process]]]:
    """A running one."""
    running = Cluster(directory)
    try:
        yield running, [running.add_worker() for _ in range(workers)]
    finally:
        running.close()
