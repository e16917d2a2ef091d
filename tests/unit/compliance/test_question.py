"""What a mechanism takes for the sensitivity is never below what one flip does to an audit's answer."""

from __future__ import annotations

import gc
import itertools
import weakref
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from compliance.mechanisms import MECHANISMS
from compliance.mechanisms.mechanism import NO_FACTS, BatchQuestion, chosen, ends_of
from compliance.noise.sampling import Seeded
from compliance.records.people import Records, RecordsError
from fairwall.laws.choice.cell_partition import STEPS, cut, enlarged
from fairwall.laws.choice.cell_purchases import planned
from fairwall.laws.metrics.metric import METRICS
from fairwall.laws.privacy.exposure import NO_LIMIT, least_people_within
from fairwall.rpc import memory

FOUR = list(itertools.product((0, 1), repeat=4))
# Equalized odds needs three people of each label.
SIX = [(1, 1, 1, 0, 0, 0)]


def question(metric: str, labels: tuple[int, ...], protected: tuple[int, ...]) -> BatchQuestion | None:
    try:
        records = Records(np.array(labels, np.uint8), np.array(protected, np.uint8), (metric,))
    except RecordsError:  # refused when they load, before anybody asks
        return None
    decisions = np.array(list(itertools.product((0.0, 1.0), repeat=len(labels))))
    return BatchQuestion(metric, decisions, records)


def test_what_a_question_says_of_itself_names_nobodys_group() -> None:
    one, other = (question("sp", (0, 1, 0, 1), protected) for protected in ((0, 0, 1, 1), (0, 1, 1, 1)))
    assert repr(one) == repr(other)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["cells", "recommended"])
def test_protected_records_are_not_kept_once_a_question_is_answered(name: str) -> None:
    generator, mechanism = np.random.default_rng(1), MECHANISMS[name]
    records = Records(np.ones(60, np.uint8), np.arange(60, dtype=np.uint8) % 2, ("sp",))
    asked = BatchQuestion("sp", generator.random((3, 60)), records)
    chosen(mechanism, "sp", 60, 3, 1.0, 0.0, asked)
    bought = mechanism.release(asked, NO_FACTS, 1.0, 0.0, Seeded(generator)).facts
    mechanism.release(asked, bought, 1.0, 0.0, Seeded(generator))
    question_kept, records_kept = weakref.ref(asked), weakref.ref(records)
    del asked, records
    gc.collect()
    assert question_kept() is None
    assert records_kept() is None


@pytest.mark.few(1)
@pytest.mark.parametrize("metric", ["abs_eo", "sp", "eodds_max", "ppv"])
def test_no_flip_moves_an_answer_by_more_than_the_sensitivities_say(metric: str) -> None:
    checked = 0
    for labels in SIX if len(METRICS[metric].strata) > 1 else FOUR:
        for protected in itertools.product((0, 1), repeat=len(labels)):
            here = question(metric, labels, protected)
            for person in range(len(labels)):
                flipped = tuple(a ^ (j == person) for j, a in enumerate(protected))
                there = question(metric, labels, flipped)
                if here is None or there is None:
                    continue
                moved = np.abs(here.gaps() - there.gaps()).max()
                assert moved <= here.sensitivities().local + 1e-12
                assert here.sensitivities().local <= here.sensitivities().overall
                checked += 1
    assert checked > 10


def many(metric: str, kind: str, people: int = 400, models: int = 7) -> BatchQuestion:
    """Ask about models that agree, of people of both labels and groups of unlike sizes."""
    rng = np.random.default_rng(5)
    records = Records(
        (rng.random(people) < 0.4).astype(np.uint8), (rng.random(people) < 0.7).astype(np.uint8), ("sp", metric)
    )
    scores = 1 / (1 + np.exp(-rng.normal(size=people) - 0.3 * rng.normal(size=(models, people))))
    rows = scores.astype(np.float32).astype(np.float64) if kind == "scores" else (scores > 0.6).astype(np.float64)
    return BatchQuestion(metric, rows, records)


def released(name: str, asked: BatchQuestion, epsilon: float = 1.0) -> tuple[NDArray[np.float64], ...]:
    release = MECHANISMS[name].release(asked, NO_FACTS, epsilon, 1e-5, Seeded(np.random.default_rng(6)))
    return release.values, *itertools.chain(*ends_of(release))


ASKED = [("sp", "scores"), ("oad", "scores"), ("eodds_sum", "decisions"), ("ppv", "decisions")]
"""Asked of the mechanisms in turn."""


@pytest.mark.few(5)
@pytest.mark.parametrize("number", range(len(MECHANISMS)))
def test_the_same_numbers_of_another_type_get_the_same_answer_bit_for_bit(number: int) -> None:
    name, (metric, kind) = sorted(MECHANISMS)[number], ASKED[number % len(ASKED)]
    asked = many(metric, kind)
    if MECHANISMS[name].refuses(metric, 1.0, 1e-5) is not None:
        return
    other = replace(asked, predictions=asked.predictions.astype(np.float32 if kind == "scores" else np.bool_))
    for one, same in zip(released(name, asked), released(name, other), strict=True):
        assert one.tobytes() == same.tobytes()


@pytest.mark.few(4)
@pytest.mark.parametrize("number", range(len(MECHANISMS)))
def test_decisions_looked_at_in_pieces_get_the_same_answer(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    name, metric = sorted(MECHANISMS)[number], ("sp", "eodds_max", "ppv")[number % 3]
    asked = many(metric, "decisions")
    if MECHANISMS[name].refuses(metric, 1.0, 1e-5) is not None:
        return
    whole = released(name, asked)
    for module in (
        "fairwall.laws.metrics.values",
        "fairwall.laws.choice.public_batch",
        "compliance.mechanisms.randomized_response",
    ):
        monkeypatch.setattr(f"{module}.AT_ONCE", 500)
    for one, same in zip(whole, released(name, many(metric, "decisions")), strict=True):
        assert one == pytest.approx(same, abs=1e-9, nan_ok=True)


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["cells", "cube", "exponential", "laplace", "low-rank", "randomized-response"])
def test_predictions_in_a_file_get_the_same_answer_bit_for_bit(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = many("eo", "scores")
    if MECHANISMS[name].refuses("eo", 1.0, 1e-5) is not None:
        return
    for each in ("LARGE_BYTES", "SPILLED_BYTES"):
        monkeypatch.setattr(memory, each, 1)
    monkeypatch.setattr(memory, "_folders", [tmp_path])
    in_file = memory.room(asked.predictions.nbytes).view(np.float64).reshape(asked.predictions.shape)
    in_file[:] = asked.predictions
    assert memory._file_of(in_file) is not None
    for one, same in zip(released(name, asked), released(name, replace(asked, predictions=in_file)), strict=True):
        assert one.tobytes() == same.tobytes()


@pytest.mark.few(1)
@pytest.mark.parametrize(("kind", "epsilon"), [("scores", 0.5), ("decisions", 3.0)])
def test_very_many_are_put_into_cells_as_a_part_of_them_is_cut(
    kind: str, epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = many("eo", kind, people=3000, models=9)
    exact = asked.gaps()
    whole = np.abs(released("cells", asked, epsilon)[0] - exact)
    monkeypatch.setattr("fairwall.laws.choice.public_batch.FEW", 700)
    monkeypatch.setattr("fairwall.laws.choice.public_batch._RAREST", 200)
    monkeypatch.setattr("fairwall.laws.choice.public_batch.AT_ONCE", 5000)
    asked = many("eo", kind, people=3000, models=9)
    assert len(asked.asked.few.labels) < 1000
    bought = planned(asked.asked, epsilon)
    sizes = bought.people
    assert sizes[sizes > 0].min() >= least_people_within(epsilon, NO_LIMIT)
    labels = asked.records.labels
    assert all(len(np.unique(labels[bought.cell_of == cell])) == 1 for cell in np.flatnonzero(sizes))
    assert np.count_nonzero(sizes) > 2
    # As good as cells of their own, and the noise is that of the same counts: whoever is who.
    assert np.abs(released("cells", asked, epsilon)[0] - exact).mean() < 2 * whole.mean() + 0.01
    turned = replace(asked, records=Records(labels, 1 - asked.records.protected, asked.records.metrics))
    assert np.array_equal(planned(turned.asked, epsilon).cell_of, bought.cell_of)


def test_of_very_many_a_sum_is_measured_besides_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairwall.laws.choice.public_batch.FEW", 1500)
    monkeypatch.setattr("fairwall.laws.choice.public_batch._RAREST", 200)
    monkeypatch.setattr("fairwall.laws.choice.public_batch.AT_ONCE", 5000)
    asked = many("sp", "scores", people=6000, models=9)
    assert len(asked.asked.few.labels) < 2000
    bought = planned(asked.asked, 0.1)
    assert len(bought.weights)
    for row in bought.weights:
        assert len(row) == 6000
        assert not np.bincount(bought.cell_of, row).any()  # which tells nothing of how many are in a cell
        assert np.abs(row).max() == STEPS
    values, *_ = released("cells", asked, 0.1)
    assert np.isfinite(values).all()


def test_cells_that_are_too_small_are_put_together() -> None:
    values = np.random.default_rng(7).random((3, 600))
    cuts = cut(values, 10)
    cells = min(cuts.most, 20)
    found = cuts.cell_of_others(values, cells)
    # Whom the cuts were found by is where they were cut.
    own = cuts.cell_of(cells)
    assert all(len(np.unique(found[own == cell])) == 1 for cell in range(cells))
    few = cuts.cell_of_others(values[:, :40], cells)
    for least in (1, 3, 15, 40, 60):
        sizes = np.bincount(enlarged(few, cells, least), minlength=cells)
        assert sizes.sum() == 40
        assert sizes[sizes > 0].min() >= min(least, 40)
