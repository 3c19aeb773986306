"""Checkpoints in a directory with any name, and on a file system that is not this machine's.

That is an HDFS with a name node and a data node.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random

import orjson
import pytest
from boards import FIRST_MS, one_join
from hadoop import hdfs
from harness import Bench, Event, until
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from liveboard.config import StorageSettings
from liveboard.pipeline import stores
from liveboard.pipeline.checkpoints import Checkpoints, local_address
from liveboard.pipeline.generation import Generation

pytestmark = pytest.mark.integration


@contextmanager
def stored(spark: SparkSession, address: str) -> Iterator[Checkpoints]:
    """Checkpoints as a pipeline has them with `storage.checkpoints`."""
    conf = stores.conf(StorageSettings(checkpoints=address))
    before = {name: str(spark.conf.get(name)) for name in conf}
    for name, value in conf.items():
        spark.conf.set(name, value)
    try:
        yield Checkpoints(spark, address)
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def some_events(random: Random) -> Iterator[Event]:
    for _ in range(40):
        value = {"userId": f"u{random.randrange(20)}", "age": random.randrange(99), "balance": random.random()}
        yield Event(random.choice(["users", "accounts"]), orjson.dumps(value), FIRST_MS + random.randrange(5_000))


def refusal(spark: SparkSession, path: str) -> str:
    """Why the manager of checkpoints does not write a file that is there."""
    jvm = spark.sparkContext._jvm
    java = jvm.org.apache.hadoop.fs.Path(path)  # type: ignore[union-attr]
    package = "org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager"
    configuration = spark._jsparkSession.sessionState().newHadoopConf()
    manager = getattr(jvm, package).create(java.getParent(), configuration)
    assert manager.getClass().getSimpleName() == "FileContextBasedCheckpointFileManager"
    file = manager.createAtomic(java, False)
    with pytest.raises(Py4JJavaError) as caught:
        file.close()
    return str(caught.value.java_exception.getClass().getSimpleName())


def test_b11_spark_hadoop_and_python_find_a_checkpoint_under_the_same_name(spark: SparkSession, tmp_path: Path) -> None:
    directory = tmp_path / "my böard 100%20"
    checkpoints = Checkpoints(spark, local_address(directory))
    stream = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
    started = stream.writeStream.format("noop").option("checkpointLocation", checkpoints.where("g1"))
    query = started.trigger(availableNow=True).start()
    query.awaitTermination()
    assert {path.name for path in tmp_path.iterdir()} == {directory.name}
    assert (directory / "g1" / "offsets" / "0").is_file()
    assert checkpoints.has_batch("g1")
    assert checkpoints.generations() == {"g1"}
    checkpoints.remove("g1")
    assert list(directory.iterdir()) == []


def test_b11_a_board_goes_on_from_its_checkpoint_in_hdfs(kafka: str, spark: SparkSession, tmp_path: Path) -> None:
    random = Random(20)
    with (
        hdfs(tmp_path) as address,
        stored(spark, f"{address}/boards") as checkpoints,
        closing(Bench(kafka, one_join("left"))) as bench,
    ):
        bench.create_topics()
        bench.produce(some_events(random))
        generation = Generation(spark, bench.plan, bench.generation, checkpoints, "5 seconds")
        assert not checkpoints.exists(bench.generation)
        try:
            generation.build()
            until(generation.is_built)
            built = checkpoints.read_up_to(bench.generation)
            generation.follow()
            bench.produce(some_events(random))
            bench.expect_oracle()
            # Real-Time Mode has ended a batch of its own, too.
            until(lambda: checkpoints.read_up_to(bench.generation) != built, "a checkpoint")
            generation.stop()
            bench.produce(some_events(random))
            generation.follow()
            bench.produce(some_events(random))
            bench.expect_oracle()
        finally:
            generation.stop()
        assert checkpoints.generations() == {bench.generation}
        assert "AlreadyExists" in refusal(spark, f"{checkpoints.where(bench.generation)}/offsets/0")
        checkpoints.remove(bench.generation)
        assert checkpoints.generations() == set()
