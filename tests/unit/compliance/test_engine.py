"""An engine adds up what arrays of the same people do, in any order of rows, and tells one table from another."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from compliance.answers.audits import game_case, intervals_of, values_of
from compliance.answers.charging import DEVELOPER
from compliance.ledger.accountant import Budget
from compliance.mechanisms import MECHANISMS
from compliance.mechanisms.counts import UnseenPredictions
from compliance.mechanisms.mechanism import BatchQuestion
from compliance.records.engine import Engine, EnginePeople, TableLocation
from compliance.records.engine import duckdb as opened
from compliance.records.people import Records
from compliance.records.same_people import shared
from compliance.records.sums import GRID, StratumSums, TableSums
from fairwall.laws.metrics.metric import METRICS

duckdb = pytest.importorskip("duckdb")
pytest.importorskip("ibis")

pytestmark = pytest.mark.filterwarnings("ignore:fetch_arrow_table")  # which Ibis calls

N = 400
RNG = np.random.default_rng(5)
LABELS, PROTECTED = RNG.integers(0, 2, (2, N)).astype(np.uint8)
DECISIONS = RNG.integers(0, 2, (3, N)).astype(np.float64)
SCORES = RNG.integers(0, 1025, (2, N)) / 1024
KEY = b"k" * 32


def write(path: Path, **columns: np.ndarray) -> TableLocation:
    names = ", ".join(f'unnest($c{i}) AS "{name}"' for i, name in enumerate(columns))
    with duckdb.connect() as engine:
        engine.execute(
            f"COPY (SELECT {names}) TO '{path}' (FORMAT parquet)",
            {f"c{i}": values.tolist() for i, values in enumerate(columns.values())},
        )
    return TableLocation(str(path))


def people(path: Path, ids: np.ndarray, protected: np.ndarray = PROTECTED, labels: np.ndarray = LABELS) -> Engine:
    table = write(path, id=ids, a=np.where(protected == 1, "x", "y"), y=labels.astype(int))
    return Engine(lambda: opened(None, None), table, "id", "a", "y", "x", None, "1")


def asked(folder: Path, values: np.ndarray, order: np.ndarray, name: str = "t", *, text: bool = False) -> TableSums:
    engine = people(folder / "people.parquet", np.arange(N))
    columns = {f"m{j}": row[order] if (row % 1).any() else row[order].astype(int) for j, row in enumerate(values)}
    ids = order.astype(str) if text else order
    table = write(folder / f"{name}.parquet", who=ids, **columns)
    return engine.sums(table, "who", (), 100, set(), engine.look())


@pytest.mark.few(1)
@pytest.mark.parametrize("metric", ["eodds_max", "ppv"])
def test_sums_are_those_of_the_arrays(tmp_path: Path, metric: str) -> None:
    values = DECISIONS if METRICS[metric].binary else np.vstack([DECISIONS, SCORES])
    question = BatchQuestion(metric, values, Records(LABELS, PROTECTED, (metric,)))
    exact, sums = question.sums(), asked(tmp_path, values, RNG.permutation(N))
    assert sums.are_decisions == bool(METRICS[metric].binary)
    for found, stratum in zip(sums.strata(metric), question.asked.strata, strict=True):
        inside = np.concatenate(list(stratum.pieces()))
        assert (found.label, found.parts, found.people) == (stratum.label, stratum.parts, stratum.people)
        assert found.totals.tobytes() == inside.sum(axis=1).tobytes()
        assert found.sum0.tobytes() == np.concatenate([exact[i].sum0 for i in stratum.parts]).tobytes()
        assert found.n0 == exact[stratum.parts[0]].n0


@pytest.mark.few(1)
@pytest.mark.parametrize(("metric", "mechanism"), [("eodds_max", "cube"), ("sp", "counts"), ("di", "cube")])
def test_answers_are_those_of_models_that_are_handed_over_bit_for_bit(
    tmp_path: Path, metric: str, mechanism: str
) -> None:
    told = []
    for engine in (False, True):
        records = Records(LABELS, PROTECTED, (metric,), 20)
        sums = asked(tmp_path, SCORES, RNG.permutation(N)) if engine else TableSums.of(records, SCORES)
        batch = UnseenPredictions(sums.models, lambda sums=sums: sums)  # type: ignore[misc]
        case = game_case("d", records, MECHANISMS[mechanism], Budget(3.0), 0.0, 3, b"s" * 32)
        entry = case.answer(DEVELOPER, "r", b"", metric, batch, 1.0)
        again = case.answer(DEVELOPER, "s", b"", metric, batch, 2.0)  # with N0 as it was bought
        ends = [end for each in (entry, again) for ends in intervals_of(each) for end in ends]
        told.append([values_of(entry), values_of(again), *ends, case.probability_above(entry, batch, 0.1)])
    for own, other in zip(*told, strict=True):
        assert own.tobytes() == other.tobytes()


def test_one_person_moves_what_is_rounded_by_as_much_as_noise_hides() -> None:
    """At most 1/h steps, also where float64 errs by more than a sum is away from a half, and one more by twice that."""
    step, n0, of = 2.0**-24, 10**7, 10**6
    sum0 = np.rint(RNG.uniform(0, 1, of) * n0 * GRID) / GRID
    stratum = StratumSums(None, (0,), 2 * n0, n0, 2 * sum0, sum0)
    told = stratum.coordinates(step)
    for value in (0.0, 1.0):
        turned = replace(stratum, n0=n0 + 1, sum0=sum0 + value)
        moved = np.rint(told.of_sums(turned.n0, turned.sum0) / step) - np.rint(told.of_sums(n0, sum0) / step)
        assert np.abs(moved).max() <= 1 / step


def test_a_digest_is_of_rows_whatever_their_order(tmp_path: Path) -> None:
    order, values = RNG.permutation(N), np.vstack([DECISIONS, SCORES])
    digest = asked(tmp_path, values, order).digest
    assert asked(tmp_path, values, RNG.permutation(N)).digest == digest
    swapped = values.copy()
    pair = np.flatnonzero((LABELS == 1) & (PROTECTED == 1))[:2]
    swapped[:, pair] = swapped[:, pair[::-1]]
    for changed in (swapped, np.vstack([DECISIONS, SCORES * (1 - 2.0**-30)])):
        assert asked(tmp_path, changed, order).digest != digest


@pytest.mark.check
def test_ids_of_another_type_are_compared_as_text(tmp_path: Path) -> None:
    order = RNG.permutation(N)
    told, own = (asked(tmp_path, DECISIONS, order, text=text) for text in (True, False))
    assert told.sum0.tobytes() == own.sum0.tobytes()


def look(folder: Path, ids: np.ndarray, protected: np.ndarray = PROTECTED, labels: np.ndarray = LABELS) -> EnginePeople:
    return people(folder / "people.parquet", ids, protected, labels).look()


def test_a_fingerprint_is_of_who_is_in_which_group(tmp_path: Path) -> None:
    order = RNG.permutation(N)
    first = look(tmp_path, np.arange(N)).fingerprint(KEY)
    assert look(tmp_path, order, PROTECTED[order], LABELS[order]).fingerprint(KEY) == first
    turned = look(tmp_path, np.arange(N), 1 - PROTECTED).fingerprint(KEY)
    relabelled = look(tmp_path, np.arange(N), labels=1 - LABELS).fingerprint(KEY)
    moved = look(tmp_path, np.arange(N), RNG.permutation(PROTECTED)).fingerprint(KEY)
    assert turned[:16] == relabelled[:16] == first[:16] != moved[:16]
    assert len({turned, relabelled, first, moved}) == 4


@pytest.mark.check
def test_the_same_people_are_known_by_their_ids(tmp_path: Path) -> None:
    first = look(tmp_path, np.arange(N)).traits().sealed(KEY)
    same = look(tmp_path, np.arange(N), 1 - PROTECTED).traits().sealed(KEY)
    some = look(tmp_path, np.arange(N) + N // 2).traits().sealed(KEY)
    others = look(tmp_path, np.arange(N) + N).traits().sealed(KEY)
    assert shared(first, same)
    assert "200 of their ids" in shared(first, some)
    assert shared(first, others) == ""
