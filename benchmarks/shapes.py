"""How `recommended` answers about models of many shapes: how often intervals hold, and how far answers are off.

    python benchmarks/shapes.py [--draws 20] [--people 1000] [--models 1 5 25] [--epsilons 0.5 1 5] [--short]
    python benchmarks/shapes.py --guaranteed [--draws 20] [--people 1000] [--models 1 5 25] [--epsilons 0.5 1 5]
    python benchmarks/shapes.py --likely [--draws 300] [--people 1000] [--models 25] [--epsilons 1]

A shape says how the scores, or the decisions, of both groups are spread; a batch has one model of it, or several that
are near it, or as many different ones. Groups are of 8, 20 and 40%. Printed are, for each number of models and epsilon:

* coverage of guaranteed and of likely intervals, over answers that have them, in percent: in the shape in the middle
  and in the worst one. Bars, of likely ones: 94 to 98 in the middle, 88 in the worst;
* error: the median, and the root mean square, over the least of `cube`, `counts` and `randomized-response`, in the
  shape in the middle and in the worst one. Bars: 2 and 2.5 in the worst.

A shape that misses a bar is looked at again, with other seeds and 150 draws, and that counts: models of one batch err
together, and so some of 135 shapes would miss a bar by chance.

With --guaranteed a policy wants intervals that hold whoever is who, and for each kind of batch is printed how wide they
are, over the better of `counts` and `cube`. Bars: 0.8 of scores near one model's, of 25 models and more about 1,000
people and more, in the shape in the middle; and 1.02 in any.

With --likely the models of a batch are looked at one by one: what decides is the one whose likely interval holds least
often, in each shape and in each of `KINDS`, whose models are alike but for what hides from cells. Printed are batches
below the bar, and the worst. Bar: 88% of 300 draws.

Exit status 1 if a bar is missed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from itertools import chain, product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from short import parsed

from compliance.mechanisms import MECHANISMS
from compliance.mechanisms.mechanism import NO_FACTS, BatchQuestion, ends_of
from compliance.mechanisms.recommended import Recommended
from compliance.noise.sampling import Seeded
from compliance.records.people import Records
from fairwall.laws.mechanisms.calibration import metric_range

Rng = np.random.Generator
Array = NDArray[np.float64]

_AS_GOOD = 1e-3
"""Errors below this are as good."""

_AGAIN = 150

_HELD = 0.88
"""A likely interval holds as often at least."""

GUARANTEED = ("cube", "counts", "randomized-response")


def _where(is_one: NDArray[Any], one: Array, other: Array) -> Array:
    return np.where(is_one, one, other)


SHAPES: dict[str, Callable[[Rng, Array], Array]] = {
    "uniform": lambda rng, a: rng.random(a.size),
    "shift .05": lambda rng, a: np.clip(0.9 * rng.random(a.size) + 0.05 * a, 0, 1),
    "shift .2, up to .8": lambda rng, a: 0.8 * rng.random(a.size) + 0.2 * a,
    "shift .35, to 1": lambda rng, a: np.minimum(1, rng.random(a.size) + 0.35 * a),
    "beta risks": lambda rng, a: _where(a, rng.beta(2, 8, a.size), rng.beta(2, 5, a.size)),
    "rare risks": lambda rng, a: _where(a, rng.beta(0.5, 12, a.size), rng.beta(0.5, 9, a.size)),
    "rare high": lambda rng, a: np.where(rng.random(a.size) < 0.03 * a, 0.95, 0.2 * rng.random(a.size)),
    "rare high, others": lambda rng, a: np.where(rng.random(a.size) < 0.05 * (1 - a), 0.95, 0.2 * rng.random(a.size)),
    "one tail": lambda rng, a: np.where(rng.random(a.size) < 0.1 * a, 0.95, 0.9 * rng.random(a.size)),
    "plateau": lambda rng, a: np.where((a == 0) & (rng.random(a.size) < 0.4), 0.5, rng.random(a.size)),
    "clusters": lambda rng, a: rng.choice([0.1, 0.5, 0.9], a.size) + 0.05 * a + 0.02 * rng.random(a.size),
    "mixture": lambda rng, a: _where(rng.random(a.size) < 0.3 + 0.2 * a, rng.beta(8, 3, a.size), rng.random(a.size)),
    "narrow": lambda rng, a: np.clip(0.5 + 0.05 * rng.normal(size=a.size) + 0.01 * a, 0, 1),
    "far apart": lambda rng, a: _where(a, rng.beta(9, 2, a.size), rng.beta(2, 9, a.size)),
    "other variance": lambda rng, a: _where(a, rng.beta(2, 2, a.size), rng.beta(12, 12, a.size)),
}  # fmt: skip
NEAR: dict[str, Callable[[Rng, Array, Array], Array]] = {
    "scores near one": lambda rng, score, _: np.clip(score + 0.05 * rng.normal(size=score.size), 0, 1),
    "scores by themselves": lambda _, score, own: np.clip(0.5 * score + 0.5 * own, 0, 1),
    "decisions": lambda rng, score, _: np.where(score > np.quantile(score, rng.uniform(0.2, 0.9)), 1.0, 0.0),
}  # fmt: skip


def _near(rng: Rng, score: Array, models: int, noise: float = 0.03) -> Array:
    return np.asarray(np.clip(score + noise * rng.normal(size=(models, score.size)), 0, 1))


def _decided(scores: Array, limits: Array | float) -> Array:
    return np.where(scores > limits, 1.0, 0.0)


def _with_odd(rows: Array, odd: int, last: Array) -> Array:
    rows[-odd:] = last
    return rows


def _some(rng: Rng, a: Array) -> Array:
    """Return who gets more of an odd version, 1, or does not: 70% of the disadvantaged."""
    return np.where((a == 0) & (rng.random(a.size) < 0.7), 1.0, 0.0)


def _one_odd(noise: float, more: float, odd: int = 1) -> Callable[[Rng, Array, int], Array]:
    def rows(rng: Rng, a: Array, models: int) -> Array:
        found = _near(rng, rng.random(a.size), models, noise)
        return _with_odd(found, odd, np.asarray(np.clip((1 - more) * found[-odd:] + more * _some(rng, a), 0, 1)))

    return rows


def _odd_decisions(low: float, high: float) -> Callable[[Rng, Array, int], Array]:
    def rows(rng: Rng, a: Array, models: int) -> Array:
        score = rng.random(a.size)
        found = _decided(score, rng.uniform(low, high, (models, 1)))
        return _with_odd(found, 1, np.maximum(_decided(score, 0.62), _some(rng, a)))

    return rows


def _binned(rng: Rng, a: Array) -> Array:
    return np.asarray(np.floor(10 * rng.random(a.size)) / 10 + 0.06 * (1 - a) + 0.03 * rng.random(a.size))


def _flipped(rng: Rng, decisions: Array, models: int, share: float) -> Array:
    return np.abs(decisions - (rng.random((models, decisions.size)) < share))


def _tied(rng: Rng, a: Array, models: int) -> Array:
    values = [0.0, 0.5, 1.0]
    again = rng.random((models, a.size)) < 0.1
    return np.where(again, rng.choice(values, (models, a.size)), rng.choice(values, a.size, p=[0.5, 0.3, 0.2]))


KINDS: dict[str, Callable[[Rng, Array, int], Array]] = {
    "one odd version": _one_odd(0.03, 0.12),
    "one odd version of nearly equal ones": _one_odd(0.01, 0.12),
    "one very odd version": _one_odd(0.03, 0.3),
    "two odd versions": _one_odd(0.02, 0.12, odd=2),
    "one odd version in decisions": _odd_decisions(0.45, 0.55),
    "one odd version in nearly equal decisions": _odd_decisions(0.6, 0.64),
    "group told in bins": lambda rng, a, models: _near(rng, _binned(rng, a), models, 0.005),
    "group told in bins, decisions": lambda rng, a, models: _decided(
        _binned(rng, a), rng.uniform(0.05, 0.95, (models, 1))
    ),
    "group told in three clusters": lambda rng, a, models: _near(
        rng, rng.choice([0.1, 0.5, 0.9], a.size) + 0.05 * a + 0.02 * rng.random(a.size), models
    ),
    "nearly equal": lambda rng, a, models: _near(rng, 0.9 * rng.random(a.size) + 0.05 * a, models, 1e-3),
    "nearly equal decisions": lambda rng, a, models: _flipped(
        rng, _decided(rng.random(a.size) + 0.1 * a, 0.5), models, 0.005
    ),
    "one flips a few": lambda rng, a, models: _with_odd(
        np.tile(_decided(rng.random(a.size), 0.5), (models, 1)), 1, _decided(rng.random(a.size), 0.45)
    ),
    "heavy ties": _tied,
    "nearly constant": lambda rng, a, models: _decided(0.01 + 0.03 * (1 - a), rng.random((models, a.size))),
    "nearly constant and alike": lambda rng, a, models: _flipped(
        rng, _decided(0.01 + 0.05 * (1 - a), rng.random(a.size)), models, 0.003
    ),
}


def _records(people: int, share: float) -> Records:
    groups = (np.arange(people) >= max(2, round(share * people))).astype(np.uint8)
    return Records(np.zeros(people, np.uint8), groups, ("sp",))


def kinds(people: int, models: int, share: float, rng: Rng) -> Iterator[tuple[str, BatchQuestion]]:
    """Yield a batch of each kind."""
    records = _records(people, share)
    groups = records.protected
    for kind, draw in KINDS.items():
        yield f"{kind}, {share:.0%}", BatchQuestion("sp", draw(rng, groups.astype(np.float64), models), records)


def likely(people: int, models: int, epsilon: float, draws: int) -> bool:
    """Print how often the likely interval of each batch's worst model holds, and say whether a bar is missed."""
    rng = np.random.default_rng((people, models))
    found = []
    for number, (name, question) in enumerate(
        chain(kinds(people, models, 0.08, rng), questions(people, models, 0.2, rng), kinds(people, models, 0.02, rng))
    ):
        held = told(question, "recommended", epsilon, draws, number)[2].mean(axis=0)
        found.append((float(held.min()), name))
        if found[-1][0] < _HELD:
            print(f"  worst {held.min():.3f}, mean {held.mean():.3f}: {name}", flush=True)
    least, name = min(found)
    print(f"n {people:>5} m {models:>3} eps {epsilon:>4g}: {len(found)} batches, worst model {least:.3f}, {name}")
    return least < _HELD


def questions(people: int, models: int, share: float, rng: Rng) -> Iterator[tuple[str, BatchQuestion]]:
    """Yield a batch of each shape."""
    records = _records(people, share)
    groups = records.protected
    for (shape, draw), (near, of_model) in product(SHAPES.items(), NEAR.items()):
        score = draw(rng, groups.astype(np.float64))
        rows = [of_model(rng, score, draw(rng, groups.astype(np.float64))) for _ in range(models)]
        yield f"{shape}, {near}, {share:.0%}", BatchQuestion("sp", np.array(rows), records)


def told(question: BatchQuestion, name: str, epsilon: float, draws: int, seed: int) -> tuple[Array, Array, Array]:
    """Return errors, and whether guaranteed and likely intervals hold, NaN for none: shape (draws, models) each."""
    mechanism = Recommended() if name == "recommended" else MECHANISMS[name]
    found, gaps = [], question.gaps()
    for draw in range(draws):
        released = mechanism.release(question, NO_FACTS, epsilon, 0.0, Seeded(np.random.default_rng((seed, draw))))
        held = [
            np.where(np.isnan(low), np.nan, (low - 1e-12 <= gaps) & (gaps <= high + 1e-12))
            for low, high in ends_of(released)
        ]
        found.append([np.abs(np.clip(released.values, *metric_range("sp")) - gaps), *held])
    errors, sure, likely = np.moveaxis(np.array(found), 1, 0)
    return errors, sure, likely


def look(question: BatchQuestion, epsilon: float, draws: int, seed: int) -> tuple[float, float, float, float]:
    """Return how often guaranteed and likely intervals hold, NaN for none, and both errors over the least of others."""
    errors, *held = told(question, "recommended", epsilon, draws, seed)
    others = [told(question, other, epsilon, draws, seed)[0] for other in GUARANTEED]
    medians, squares = (
        measure(errors) / max(min(measure(other) for other in others), _AS_GOOD) for measure in (median, rms)
    )
    sure, likely = (np.nan if np.isnan(each).all() else float(np.nanmean(each)) for each in held)
    return sure, likely, medians, squares


def misses(found: tuple[float, float, float, float]) -> bool:
    """Say whether a shape misses a bar."""
    _, likely, medians, squares = found
    return likely < _HELD or medians > 2 or squares > 2.5


def half_width(question: BatchQuestion, name: str, epsilon: float, draws: int, seed: int) -> float:
    """Return the median half-width of guaranteed intervals, within the metric's range."""
    mechanism = Recommended(promise="guaranteed") if name == "recommended" else MECHANISMS[name]
    found = []
    for draw in range(draws):
        released = mechanism.release(question, NO_FACTS, epsilon, 0.0, Seeded(np.random.default_rng((seed, draw))))
        low, high = (np.clip(end, *metric_range("sp")) for end in ends_of(released)[0])
        found.append((high - low) / 2)
    return median(np.array(found))


def widths(people: int, models: int, epsilon: float, draws: int) -> bool:
    """Print how wide guaranteed intervals are, and say whether a bar is missed."""
    ratios: dict[str, list[float]] = {near: [] for near in NEAR}
    for share in (0.08, 0.2, 0.4):
        rng = np.random.default_rng((people, models, int(100 * share)))
        for number, (name, question) in enumerate(questions(people, models, share, rng)):
            others = min(half_width(question, other, epsilon, draws, number) for other in ("counts", "cube"))
            own = half_width(question, "recommended", epsilon, draws, number)
            ratios[name.rsplit(", ", 2)[1]].append(own / others)
    told = "; ".join(f"{near} {np.median(of):.2f}, worst {np.max(of):.2f}" for near, of in ratios.items())
    print(f"n {people:>5} m {models:>3} eps {epsilon:>4g}: half-width of {told}", flush=True)
    near_one = float(np.median(ratios["scores near one"]))
    return max(map(max, ratios.values())) > 1.02 or (models >= 25 and people >= 1000 and near_one > 0.8)


def median(errors: Array) -> float:
    """Return the median."""
    return float(np.median(errors))


def rms(errors: Array) -> float:
    """Return the root mean square."""
    return float(np.sqrt(np.mean(errors**2)))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--people", type=int, nargs="+", default=[1000])
    parser.add_argument("--models", type=int, nargs="+", default=[1, 5, 25])
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.5, 1.0, 5.0])
    parser.add_argument("--worst", type=int, default=0, help="how many of the worst shapes to name")
    parser.add_argument("--guaranteed", action="store_true", help="look at how wide guaranteed intervals are")
    parser.add_argument("--likely", action="store_true", help="look at the worst model of each batch")
    asked = parsed(parser, draws=1, people=[200], models=[5], epsilons=[1.0])
    missed = False
    for people, models, epsilon in product(asked.people, asked.models, asked.epsilons):
        if asked.guaranteed:
            missed |= widths(people, models, epsilon, asked.draws)
            continue
        if asked.likely:
            missed |= likely(people, models, epsilon, asked.draws)
            continue
        rows = []
        for share in (0.08, 0.2, 0.4):
            rng = np.random.default_rng((people, models, int(100 * share)))
            for number, (name, question) in enumerate(questions(people, models, share, rng)):
                found = look(question, epsilon, asked.draws, number)
                if misses(found) and not asked.short:
                    found = look(question, epsilon, _AGAIN, 1000 + number)
                rows.append((name, *found))
        names, table = [row[0] for row in rows], np.array([row[1:] for row in rows])
        of_each = [column[~np.isnan(column)] if not np.isnan(column).all() else column for column in table.T]
        middle, least, most = ([float(of(column)) for column in of_each] for of in (np.median, np.min, np.max))
        print(
            f"n {people:>5} m {models:>3} eps {epsilon:>4g}: "
            f"guaranteed {100 * middle[0]:5.1f}, worst {100 * least[0]:5.1f}; "
            f"likely {100 * middle[1]:5.1f}, worst {100 * least[1]:5.1f}; "
            f"median error {middle[2]:.2f}, worst {most[2]:.2f}; rms {middle[3]:.2f}, worst {most[3]:.2f}",
            flush=True,
        )
        for column, order in ((1, np.argsort(table[:, 1])), (2, np.argsort(-table[:, 2]))):
            for at in order[: asked.worst]:
                print(f"    {'likely' if column == 1 else 'error'} {table[at, column]:.2f}: {names[at]}")
        missed |= misses((least[0], least[1], most[2], most[3])) or not 0.94 <= middle[1] <= 0.98
    sys.exit(missed and not asked.short)


if __name__ == "__main__":
    main()
