"""Spark, with two workers on this machine, adds up what DuckDB does: sums are of whole numbers, on any engine."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compliance.records.engine import Engine, TableLocation
from compliance.records.engine import duckdb as opened
from compliance.records.sums import TableSums
from fairwall.rpc.errors import Refusal

duckdb = pytest.importorskip("duckdb")
ibis = pytest.importorskip("ibis")
pyspark = pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'ibis-framework[pyspark]'")
if shutil.which("java") is None:
    pytest.skip("Spark needs Java", allow_module_level=True)

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # Spark's own, and what it reads files with

N = 4000
RNG = np.random.default_rng(5)
LABELS, PROTECTED = (RNG.random((2, N)) < [[0.4], [0.7]]).astype(np.uint8)
DECISIONS = RNG.integers(0, 2, (3, N))
SCORES = np.vstack([RNG.random((2, N)), np.full((1, N), 2.0**-25)])  # the last is half a step of everybody's


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    session = (
        pyspark.sql.SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "3")
        .getOrCreate()
    )
    yield ibis.pyspark.connect(session)
    session.stop()


def write(path: Path, parts: int = 1, **columns: np.ndarray) -> TableLocation:
    """Write some files, each with its share of the rows."""
    path.mkdir()
    for k, rows in enumerate(np.array_split(np.arange(len(next(iter(columns.values())))), parts)):
        names = ", ".join(f'unnest($c{i}) AS "{name}"' for i, name in enumerate(columns))
        values = {f"c{i}": column[rows].tolist() for i, column in enumerate(columns.values())}
        with duckdb.connect() as engine:
            engine.execute(f"COPY (SELECT {names}) TO '{path / str(k)}.parquet' (FORMAT parquet)", values)
    return TableLocation(str(path / "*.parquet"))


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    table = write(tmp_path / "people", 3, id=np.arange(N), a=np.where(PROTECTED == 1, "x", "y"), y=LABELS.astype(int))
    return Engine(lambda: opened(None, None), table, "id", "a", "y", "x", None, "1")


def scores(folder: Path, order: np.ndarray, values: np.ndarray = SCORES) -> TableLocation:
    columns = {f"m{j}": row[order] for j, row in enumerate([*DECISIONS, *values])}
    return write(folder, 5, who=order, **columns)


def asked(engine: Engine, table: TableLocation) -> TableSums:
    return engine.sums(table, "who", (), 100, set(), engine.look())


def test_sums_are_those_of_duckdb(tmp_path: Path, engine: Engine, spark: Any) -> None:
    table = scores(tmp_path / "scores", RNG.permutation(N))
    own, other = (asked(each, table) for each in (engine, replace(engine, connect=lambda: nullcontext(spark))))
    for name in ("people", "total", "squares", "least", "most", "whole", "n0", "sum0"):
        assert getattr(own, name).tobytes() == getattr(other, name).tobytes(), name


def test_people_are_counted_and_told_apart(tmp_path: Path, engine: Engine, spark: Any) -> None:
    there = replace(engine, connect=lambda: nullcontext(spark))
    told, again = engine.look(), there.look()
    assert (told.counts, told.columns()[0].tobytes()) == (again.counts, again.columns()[0].tobytes())
    assert there.look().fingerprint(b"k" * 32) == again.fingerprint(b"k" * 32)
    turned = write(tmp_path / "turned", 2, id=np.arange(N), a=np.where(PROTECTED == 1, "y", "x"), y=LABELS.astype(int))
    assert replace(there, people=turned).look().fingerprint(b"k" * 32) != again.fingerprint(b"k" * 32)


def test_a_digest_is_of_rows_whatever_their_order(tmp_path: Path, engine: Engine, spark: Any) -> None:
    there = replace(engine, connect=lambda: nullcontext(spark))
    first = asked(there, scores(tmp_path / "first", RNG.permutation(N))).digest
    assert asked(there, scores(tmp_path / "second", RNG.permutation(N))).digest == first
    assert asked(there, scores(tmp_path / "third", RNG.permutation(N), SCORES * (1 - 2.0**-30))).digest != first


@pytest.mark.parametrize(
    ("rows", "changed"), [(N - 1, None), (N, 0.0), (N, np.nan), (N, 1.5)], ids=["few", "twice", "nan", "above"]
)
def test_what_is_refused(
    tmp_path: Path, engine: Engine, spark: Any, rows: int, changed: float | None, request: pytest.FixtureRequest
) -> None:
    order = np.arange(N)[:rows]
    values = SCORES.copy()
    if request.node.callspec.id == "twice":
        order[1] = 0
    elif changed is not None:
        values[0, 7] = changed
    table, reasons = scores(tmp_path / "scores", order, values), []
    for each in (engine, replace(engine, connect=lambda: nullcontext(spark))):
        with pytest.raises(Refusal) as error:
            asked(each, table)
        reasons.append(str(error.value.args))
    assert reasons[0] == reasons[1]
