"""Bounding: each way's argument as an exact computation, and draws against the exact law."""

import itertools
import math

import numpy as np
import pytest

from compliance.mechanisms import MECHANISMS
from compliance.mechanisms.mechanism import BatchQuestion, Reusable
from compliance.mechanisms.noise_on_gaps import Bounded, Conceal, LaplaceMechanism, bounded, to_range, truncated_laplace
from compliance.mechanisms.selection import ExponentialMechanism, SparseVectorMechanism
from compliance.noise.sampling import Seeded, System
from compliance.records.people import Records
from fairwall.laws.mechanisms.calibration import metric_range, truncated_scale, truncation_loss


def question(metric="sp", n=20, models=3):
    protected = (np.arange(n) % 4 != 0).astype(np.uint8)
    labels = (np.arange(n) % 3 != 0).astype(np.uint8)
    predictions = np.random.default_rng(0).random((models, n)).round()
    return BatchQuestion(metric, predictions, Records(labels, protected, (metric,)))


def truncated_law(truth, width, rate):
    weights = np.exp(-rate * np.abs(np.arange(width + 1) - truth))
    return weights / weights.sum()


@pytest.mark.few(1)
@pytest.mark.parametrize("metric", ["eodds_sum", "abs_sp", "ppv", "di"])
def test_a_metric_stays_in_its_range(metric):
    low, high = metric_range(metric)
    predictions = np.array(list(itertools.product((0.0, 1.0), repeat=5)))
    seen = set()
    for labels, protected in itertools.product(itertools.product((0, 1), repeat=5), repeat=2):
        records = Records(np.array(labels, np.uint8), np.array(protected, np.uint8), ())
        parts = records.group_sums(metric, predictions)
        if all(part.n0 and part.n1 for part in parts):
            gaps = BatchQuestion(metric, predictions, records).gaps()
            gaps = gaps[~np.isnan(gaps)]
            assert ((gaps >= low) & (gaps <= high)).all()
            seen |= set(gaps)
    assert low in seen
    assert high in seen


def test_the_loss_of_truncation_is_the_worst_over_all_pairs():
    for width, rate in ((1, 0.3), (7, 1e-6), (7, 2.0), (30, 0.3)):
        laws = [np.log(truncated_law(truth, width, rate)) for truth in range(width + 1)]
        for distance in range(width + 1):
            worst = max(
                np.abs(laws[truth] - laws[other]).max()
                for truth in range(width + 1)
                for other in range(width + 1)
                if abs(truth - other) <= distance
            )
            loss = truncation_loss(distance, width, rate)
            assert loss == pytest.approx(worst, rel=1e-9, abs=1e-13)
            assert distance * rate * (1 - 1e-9) <= loss <= 2 * distance * rate * (1 + 1e-9)


def test_truncation_with_the_old_scale_is_not_free():
    # Laplace noise at epsilon = 1 for a range of 2, a sensitivity of 1/2: 1.5 and not 1.
    assert truncation_loss(2**19, 2**21, 1 / 2**19) == pytest.approx(1.5, abs=0.03)


def test_the_scale_of_truncation_costs_epsilon():
    for epsilon in (1e-6, 0.1, 1.0, 20.0):
        for distance, width in ((1, 7), (3, 7), (7, 7), (2**19, 2**21), (2**43, 2**45)):
            scale = truncated_scale(distance, width, 1.0, epsilon)
            assert distance / epsilon * (1 - 1e-9) <= scale <= 2 * distance / epsilon * (1 + 1e-9)
            loss = truncation_loss(distance, width, 1 / scale)
            assert loss <= epsilon
            assert loss >= epsilon * (1 - 1e-9)


@pytest.mark.parametrize(("metric", "models", "epsilon"), [("sp", 1, 0.3), ("abs_eo", 5, 0.3), ("eodds_sum", 5, 4.0)])
def test_a_batch_of_truncated_answers_costs_epsilon(metric, models, epsilon, monkeypatch):
    drawn = []
    monkeypatch.setattr(
        "compliance.mechanisms.noise_on_gaps.truncated_laplace",
        lambda values, *rest: drawn.append(rest) or np.zeros(values.shape),
    )
    asked = question(metric, models=models)
    bounded(LaplaceMechanism(), "truncate").release(asked, {}, epsilon, 0.0, System())
    ((width, scale, step, _),) = drawn
    moves = asked.sensitivities().overall / step
    assert models * truncation_loss(math.ceil(moves), int(width / step), step / scale) == pytest.approx(
        epsilon, rel=1e-4
    )
    # Rounding both neighbours may move them a step apart.
    assert (
        models * truncation_loss(min(math.ceil(moves) + 1, int(width / step)), int(width / step), step / scale)
        <= epsilon
    )


def test_clamp_and_boundary_inflate_are_one_law():
    # The clamped law's end has the whole tail; its loss is a tail's and stays below that of the noise itself.
    rate, width = 0.4, 9
    wide = np.arange(-400, 410)
    losses = []
    for truth in range(width + 1):
        noise = np.exp(-rate * np.abs(wide - truth))
        noise /= noise.sum()
        clamped = np.array([noise[np.clip(wide, 0, width) == k].sum() for k in range(width + 1)])
        inflated = noise[400 : 400 + width + 1].copy()
        inflated[0] += noise[wide < 0].sum()
        inflated[-1] += noise[wide > width].sum()
        np.testing.assert_allclose(clamped, inflated, rtol=1e-12)
        losses.append(np.log(clamped))
    for one, other in itertools.pairwise(losses):
        assert np.abs(one - other).max() <= rate * (1 + 1e-9)
    assert (to_range(np.array([-3.0, 0.5, np.nan, 7.0]), "abs_sp")[[0, 1, 3]] == [0.0, 0.5, 1.0]).all()
    assert np.isnan(to_range(np.array([np.nan]), "sp")).all()


@pytest.mark.few(1)
@pytest.mark.parametrize(("noise", "scale"), [(Seeded(np.random.default_rng(7)), 0.3), (System(), 0.05)])
def test_truncated_draws_follow_the_law(noise, scale):
    # 9 counts at 6 standard errors: a false alarm has probability 2e-9 each.
    runs, step, width = 700, 0.125, 8
    for truth in (0, 3, 8):
        drawn = truncated_laplace(np.full(runs, truth * step), width * step, scale, step, noise)
        counts = np.bincount(np.rint(drawn / step).astype(int), minlength=width + 1)
        p = truncated_law(truth, width, step / scale)
        assert counts.size == width + 1
        assert (np.abs(counts - runs * p) <= 6 * np.sqrt(runs * p * (1 - p)) + 6).all()


def test_truncated_draws_are_made_until_each_value_has_one():
    class MissesAtFirst:
        """Noise whose first draws lie outside the range, but for the first value's."""

        calls = 0

        def laplace(self, values, scale, _step):
            self.calls += scale > 0
            return values if scale == 0 or self.calls > 1 else np.where(values < 0.2, values, 7.0)

    drawn = truncated_laplace(np.array([0.125, 0.5, 0.75]), 1.0, 0.3, 0.125, MissesAtFirst())
    assert drawn.tolist() == [0.125, 0.5, 0.75]


def test_bounded_laplace_stays_in_the_range_at_any_epsilon():
    for metric, bounding in (
        ("sp", "clamp"),
        ("sp", "truncate"),
        ("abs_eo", "boundary-inflate"),
        ("eodds_sum", "truncate"),
    ):
        low, high = metric_range(metric)
        mechanism = bounded(LaplaceMechanism(), bounding)
        asked, noise = question(metric), Seeded(np.random.default_rng(0))
        for epsilon in (1e-9, 0.1, 5.0, 1e6):
            values = mechanism.release(asked, {}, epsilon, 0.0, noise).values
            assert ((values >= low) & (values <= high)).all()
        np.testing.assert_allclose(mechanism.release(asked, {}, math.inf, 0.0, noise).values, asked.gaps())
        np.testing.assert_allclose(mechanism.release(asked, {}, 1e6, 0.0, System()).values, asked.gaps(), atol=1e-3)


def test_a_bounded_mechanism_keeps_name_price_and_refusals():
    mechanism = bounded(LaplaceMechanism(), "truncate")
    assert isinstance(mechanism, Bounded)
    assert (mechanism.name, mechanism.guarantee) == ("laplace", "pure")
    assert mechanism.cost(0.5, 0.0) == LaplaceMechanism().cost(0.5, 0.0)
    assert mechanism.refuses("di", 1.0, 0.0)
    assert bounded(Conceal(), "clamp").refuses("sp", 1.0, 0.0) is None


def test_what_has_no_argument_is_refused():
    for mechanism, bounding in (
        (Conceal(), "truncate"),
        (SparseVectorMechanism(), "clamp"),
        (ExponentialMechanism(), "boundary-inflate"),
        (LaplaceMechanism(), "round"),
    ):
        with pytest.raises(ValueError, match="choose"):
            bounded(mechanism, bounding)
    assert bounded(Conceal(), "none") == Conceal()


def test_what_was_bought_once_stays_free_once_bounded():
    for name in ("randomized-response", "recommended"):
        mechanism = bounded(MECHANISMS[name], "clamp")
        assert isinstance(mechanism, Reusable)
        facts = MECHANISMS["randomized-response"].release(question(), {}, 8.0, 0.0, System()).facts
        assert (mechanism.is_free({}, 1.0), mechanism.is_free(facts, 1.0)) == (False, True)
        assert not bounded(LaplaceMechanism(), "clamp").is_free(facts, 1.0)
