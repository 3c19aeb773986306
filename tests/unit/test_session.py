from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from liveboard.config import Secret, SparkSettings, StorageSettings
from liveboard.config.settings import S3Settings
from liveboard.contract.errors import LiveboardError
from liveboard.pipeline import driver, session, stores

_PROGRAM = """
import sys
from py4j.protocol import INPUT_CONVERTER
from liveboard.pipeline.session import leave_out_numpy
leave_out_numpy()
for converter in INPUT_CONVERTER:
    converter.can_convert("a value for Java")
print(sorted({"numpy", "pandas", "pyarrow"} & sys.modules.keys()))
"""


def test_values_go_to_java_without_pandas() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_java_that_does_not_start_says_where_to_look(tmp_path: Path) -> None:
    settings = SparkSettings(conf={"spark.driver.extraJavaOptions": "-XX:+NoSuchOption"})
    with pytest.raises(LiveboardError, match=r"it ended with exit code 1: see .*spark\.out"):
        session.create(settings, tmp_path)
    assert "NoSuchOption" in (tmp_path / "spark.out").read_text()


@pytest.mark.parametrize(
    ("slots", "inputs", "partitions"),
    [(32, 4, 8), (16, 4, 3), (1_000, 4, 8), (8, 4, 2), (0, 4, 2), (100, 40, 9)],
)
def test_partitions_are_derived_from_the_board_and_the_cluster(slots: int, inputs: int, partitions: int) -> None:
    assert session.derived_shuffle_partitions(slots, inputs) == partitions


@pytest.mark.parametrize("slots", range(14, 60))
def test_a_swap_fits_in_wherever_it_could(slots: int) -> None:
    of_one = 4 + session.derived_shuffle_partitions(slots, 4)
    session.check_slots("a cluster", slots, 2 * of_one + session.BATCH_SLOTS)


def test_too_few_slots_are_refused_with_a_sentence() -> None:
    with pytest.raises(
        LiveboardError, match=r"expected at least 9 task slots .* found 8 at spark://one:7077; give it more"
    ):
        session.check_slots("spark://one:7077", 8, 9)


def test_partitions_are_derived_only_on_a_cluster_and_only_where_nobody_decides() -> None:
    decided = {"spark.sql.shuffle.partitions": "5"}
    assert session.configured_shuffle_partitions(SparkSettings()) == session.SHUFFLE_PARTITIONS
    assert session.configured_shuffle_partitions(SparkSettings(master="local[8]", conf=decided)) == 5
    assert session.configured_shuffle_partitions(SparkSettings(master="spark://a:7077", conf=decided)) == 5
    assert session.configured_shuffle_partitions(SparkSettings(master="spark://a:7077")) is None


def running(master: str, parallelism: int, conf: Mapping[str, str]) -> Any:
    """A Spark, as far as it is asked how large it is."""
    context = SimpleNamespace(master=master, defaultParallelism=parallelism, getConf=lambda: conf)
    return SimpleNamespace(sparkContext=context)


def test_cores_are_those_of_the_machine_or_the_cluster_unless_the_parallelism_is_set() -> None:
    decided = {"spark.default.parallelism": "6"}
    assert session.cores(running("local[512]", 512, {})) == os.cpu_count()
    assert session.cores(running("local[512]", 6, decided)) == 6
    assert session.cores(running("spark://one:7077", 32, {})) == 32
    # Spark itself has the parallelism that is set for its cluster's.
    assert session.cores(running("spark://one:7077", 6, decided)) == 6


def test_local_slots_are_sparks_threads_whatever_the_parallelism_is() -> None:
    decided = {"spark.default.parallelism": "6"}
    assert session.slots(running("local[512]", 6, decided)) == 512
    assert session.slots(running("local[64, 2]", 64, {})) == 64
    assert session.slots(running("local[*]", 6, decided)) == os.cpu_count()


@pytest.mark.parametrize(
    ("address", "manager"),
    [
        ("", "FileSystemBased"),
        ("/mnt/shared", "FileSystemBased"),
        ("file:///mnt/shared", "FileSystemBased"),
        ("hdfs://host:8020/boards", "FileContextBased"),
        ("abfss://c@account.dfs.core.windows.net/boards", "FileContextBased"),
        ("gs://bucket/boards", "FileContextBased"),
        ("s3a://bucket/boards", "AbortableStreamBased"),
    ],
)
def test_each_store_has_the_checkpoint_manager_that_is_right_for_it(address: str, manager: str) -> None:
    conf = stores.conf(StorageSettings(checkpoints=address))
    assert conf["spark.sql.streaming.checkpointFileManagerClass"].endswith(f".{manager}CheckpointFileManager")


@pytest.mark.parametrize("master", ["spark://one:7077,two:7077", "yarn", "k8s://https://kubernetes:6443"])
def test_every_cluster_gets_the_same_settings_and_jars(
    master: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, str] = {}
    monkeypatch.setattr(driver, "start", lambda conf, *_: seen.update(conf))
    own = {"spark.kubernetes.container.image": "spark:4.3.0", "spark.executor.instances": "4"}
    session.Launched(SparkSettings(master=master, conf=own), tmp_path, {"java.security.auth.login.config": "none"})
    assert seen["spark.master"] == master
    assert seen.items() >= own.items()
    sent = [Path(jar).name for jar in seen["spark.jars"].split(",")]
    assert [name for name in sent if name.startswith("spark-sql-kafka")]
    # Executors know neither this machine's directories nor its Java.
    options = [value for name, value in seen.items() if name.startswith("spark.executor.")]
    assert "-Djava.security.auth.login.config=none" in " ".join(options)
    assert str(tmp_path) not in " ".join(options)


def test_keys_of_s3_are_on_no_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, str] = {}
    monkeypatch.setattr(driver, "start", lambda conf, *_: seen.update(conf))
    monkeypatch.setattr(stores, "jars", lambda *_: [Path("s3.jar")])
    s3 = S3Settings(endpoint="http://s3", access_key=Secret("who"), secret_key=Secret("hush"))
    own = {"spark.jars": "mine.jar"}
    storage = StorageSettings(checkpoints="s3a://bucket", s3=s3)
    session.Launched(SparkSettings(conf=own), tmp_path, storage=storage)
    assert seen["spark.hadoop.fs.s3a.endpoint"] == "http://s3"
    assert seen["spark.jars"].endswith("s3.jar,mine.jar")
    assert {"who", "hush"}.isdisjoint(seen.values())
