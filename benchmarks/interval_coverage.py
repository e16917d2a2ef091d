"""How often likely intervals hold the exact gap, how wide they are for that, and what P(gap > threshold) is worth.

    python benchmarks/interval_coverage.py [--worlds 2000] [--metric sp] [--only cells ...] [--by kind ...]
        [--table db_adult_processed_26k.csv.gz] [--held-back db_ACSCoverage.csv.gz]

A world is a population, a sample of it, a batch of models, and an epsilon of 0.5, 1 or 5. In made populations who is
disadvantaged is drawn given the models' common score, by a slope that is itself drawn, and of some it bends. With a
table, populations are its people whom no model was trained on, and models are those of `batch_error.py`. Later batches
are answered with what a batch of other models of the same kind has bought, as far as the mechanism uses it.

* coverage: how many exact gaps of the sample lie in their intervals, in percent. Bar: 94 to 97.5.
* width: over that of intervals which, each widened or narrowed by one factor for all, would hold 95%. Of noise that is
  merely added these are the flat prior's. Bar: 1.15.
* P: of answers to thresholds that are spread evenly over where gaps and answers lie, the largest difference between
  what P(gap > threshold) is on average in a bin of ten, and how often the population's gap is above; in bins of 200
  and more. Bar: 5 points. And how often it is not above where P is over 95%: at most 5%.

Exit status 1 if a bar is missed.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from short import parsed

from compliance.intervals.interval import probabilities_above, within_range
from compliance.mechanisms import MECHANISMS
from compliance.mechanisms.mechanism import NO_FACTS, BatchQuestion, Facts, Mechanism, chosen, ends_of
from compliance.mechanisms.recommended import Recommended
from compliance.noise.sampling import Seeded
from compliance.records.metrics import gaps
from compliance.records.people import Records
from fairwall.laws.metrics.metric import find_metric

PEOPLE = (100, 300, 1000, 3000)
MODELS = (1, 5, 25)
EPSILONS = (0.5, 1.0, 5.0)
POPULATION = 20_000
MADE = ("scores", "decisions", "bent scores", "bent decisions", "scores apart", "thresholds")
COVERAGE = (94.0, 97.5)
WIDTH = 1.15
POINTS = 5.0
SEEN_MIN = 200
DELTA = 1e-6
_THRESHOLDS = 8
_MODELS_ASKED = 2
_GAPS = 0.2
"""Where most populations' gaps lie."""


@dataclass(frozen=True, eq=False)
class World:
    """A question about a sample, another about the same people, and the population's gaps, shape (m,)."""

    kind: str
    question: BatchQuestion
    later: BatchQuestion
    gaps: NDArray[np.float64]
    epsilon: float


@dataclass(eq=False)
class Tally:
    """What became of one mechanism's answers."""

    inside: list[float] = field(default_factory=list)
    needed: list[NDArray[np.float64]] = field(default_factory=list)
    told: list[NDArray[np.float64]] = field(default_factory=list)
    above: list[NDArray[np.bool_]] = field(default_factory=list)


def made_population(
    kind: str, models: int, generator: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
    """Draw predictions of twice as many models for `POPULATION` people, and their groups."""
    common = generator.normal(size=POPULATION)
    own = generator.normal(size=(2 * models, POPULATION))
    strength = 3.0 if kind == "scores apart" else generator.uniform(0.1, 1.0)
    values: NDArray[np.float64] = 1 / (1 + np.exp(-generator.normal(0, 0.5) - common - strength * own))
    if kind == "thresholds":
        values = (common > generator.normal(0, 1, (2 * models, 1))).astype(np.float64)
    elif kind.endswith("decisions"):
        values = (values > 0.5).astype(np.float64)
    odds = generator.normal(0, 0.5) * common + generator.normal(0, 0.3) * own[0]
    if kind.startswith("bent"):
        odds = odds + generator.normal(0, 0.6) * np.cos(3 * common)
    share = np.exp(generator.uniform(np.log(0.08), np.log(0.5)))
    disadvantaged = generator.random(POPULATION) < 1 / (1 + np.exp(-np.log(share / (1 - share)) - odds))
    return values, (1 - disadvantaged).astype(np.uint8)


def worlds(
    metric: str,
    count: int,
    pools: Mapping[str, tuple[NDArray[np.float32], list[NDArray[np.uint8]]]],
    models_of: Sequence[int] = MODELS,
    people_of: Sequence[int] = PEOPLE,
) -> Iterator[World]:
    """Draw worlds: kinds take turns, and all else is drawn, models and people of so many."""
    kinds = (*MADE, *pools)
    for number in range(count):
        generator = np.random.default_rng((2016, number))
        kind, people, models = kinds[number % len(kinds)], generator.choice(people_of), int(generator.choice(models_of))
        if kind in pools:
            every, groups_of = pools[kind]
            values = every[generator.choice(len(every), 2 * models, replace=False)].astype(np.float64)
            groups = groups_of[int(generator.integers(len(groups_of)))]
        else:
            values, groups = made_population(kind, models, generator)
        if find_metric(metric).binary:
            values = (values > 0.5).astype(np.float64)
        labels = (generator.random(len(groups)) < 0.6).astype(np.uint8)
        epsilon = float(generator.choice(EPSILONS))
        rows = generator.choice(len(groups), people, replace=False)
        try:
            sample = Records(labels[rows], groups[rows], (metric,))
        except ValueError:  # a group is too small: such a policy would not start
            continue
        everybody = Records(labels, groups, (metric,))
        yield World(
            kind,
            BatchQuestion(metric, values[:models, rows], sample),
            BatchQuestion(metric, values[models:, rows], sample),
            gaps(metric, everybody.group_sums(metric, values[:models])),
            epsilon,
        )


def contenders() -> dict[str, tuple[Mechanism, float]]:
    """Return every mechanism whose answers have intervals, and the delta that it is asked at."""
    names = ("laplace", "gaussian", "propose-test-release", "counts", "counts-gaussian", "cube", "low-rank", "cells",
             "randomized-response")  # fmt: skip
    found: dict[str, tuple[Mechanism, float]] = {
        name: (MECHANISMS[name], DELTA if MECHANISMS[name].guarantee == "approximate" else 0.0) for name in names
    }
    found["cells, later batch"] = MECHANISMS["cells"], 0.0
    found["recommended"] = Recommended(), 0.0
    found["recommended, reveal_max 0.6"] = Recommended(reveal_max=0.6), 0.0
    found["recommended, later batch"] = Recommended(reveal_max=0.6), 0.0
    return found


def tell(world: World, name: str, mechanism: Mechanism, delta: float, seed: int, tallies: Sequence[Tally]) -> None:
    """Have a mechanism answer in a world, and note what became of it."""
    one = told_in(world, name, mechanism, delta, seed)
    for tally in tallies:
        tally.inside += one.inside
        tally.needed += one.needed
        tally.told += one.told
        tally.above += one.above


def told_in(world: World, name: str, mechanism: Mechanism, delta: float, seed: int) -> Tally:
    """Have a mechanism answer in a world."""
    tally = Tally()
    question, metric, noise = world.question, world.question.metric, Seeded(np.random.default_rng((seed, 1)))
    if mechanism.refuses(metric, world.epsilon, delta):
        return tally
    facts: Facts = NO_FACTS
    if name.endswith("later batch"):
        facts = mechanism.release(world.later, NO_FACTS, world.epsilon, delta, noise).facts
    answering = chosen(mechanism, metric, question.people(), question.queries, world.epsilon, delta, question)
    released = mechanism.release(question, facts, world.epsilon, delta, noise)
    _, (least, most) = ends_of(released)
    if np.isnan(least).all():
        return tally
    exact = question.gaps()
    low, high = within_range(least, most, metric)
    tally.inside.append(float(((low - 1e-12 <= exact) & (exact <= high + 1e-12)).mean()))
    middle, half = (least + most) / 2, (most - least) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        tally.needed.append(np.where(half > 0, np.abs(middle - exact) / half, 0.0))
    generator = np.random.default_rng((seed, 2))
    for model in range(min(_MODELS_ASKED, question.queries)):
        reach = min(1.0, _GAPS + float(half[model]))
        for threshold in generator.uniform(-reach, reach, _THRESHOLDS).tolist():
            ends = least[model : model + 1], most[model : model + 1]
            values = question.asked.strata[0].inside[model : model + 1]
            told = probabilities_above(*ends, values, metric, threshold, answering.name)
            if not np.isnan(told).any():
                tally.told.append(told)
                tally.above.append(world.gaps[model : model + 1] > threshold)
    return tally


def line(name: str, tally: Tally) -> bool:
    """Print what became of a mechanism's answers; return whether a bar is missed."""
    coverage = 100 * float(np.mean(tally.inside))
    needed, worlds_of = (
        np.concatenate(tally.needed),
        np.concatenate([np.full(len(of), 1 / len(of)) for of in tally.needed]),
    )
    order = np.argsort(needed)
    reached = np.searchsorted(np.cumsum(worlds_of[order]), 0.95 * worlds_of.sum())
    width = 1 / float(needed[order][min(reached, len(order) - 1)])
    missed = [not COVERAGE[0] <= coverage <= COVERAGE[1], width > WIDTH]
    words = f"{name:<28}{len(tally.inside):>6} worlds  coverage {coverage:5.1f}{'!' * missed[0]:<1}  width {width:5.2f}"
    words += f"{'!' * missed[1]:<1}"
    if tally.told:
        told, above = np.concatenate(tally.told), np.concatenate(tally.above)
        bins = np.minimum((10 * told).astype(np.intp), 9)
        off = [
            100 * float(above[bins == each].mean() - told[bins == each].mean())
            for each in range(10)
            if np.count_nonzero(bins == each) >= SEEN_MIN
        ]
        sure = told > 0.95
        wrong = 100 * float(1 - above[sure].mean()) if sure.any() else 0.0
        farthest = max(off, key=abs, default=0.0)
        missed += [abs(farthest) > POINTS, wrong > 5]
        words += f"  P off by {farthest:+5.1f}{'!' * missed[2]:<1}  wrong above 95%: {wrong:4.1f}%{'!' * missed[3]}"
    print(words, flush=True)
    return any(missed)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=2000)
    parser.add_argument("--metric", default="sp")
    parser.add_argument("--only", nargs="+", help="mechanisms")
    parser.add_argument("--by", nargs="+", choices=("kind", "people", "models", "epsilon"), default=())
    parser.add_argument("--table")
    parser.add_argument("--held-back")
    asked = parsed(parser, worlds=12)
    warnings.simplefilter("ignore")  # solvers that stop early: the models need not be the best
    pools = dict[str, tuple[NDArray[np.float32], list[NDArray[np.uint8]]]]()
    if asked.table or asked.held_back:
        from batch_error import logistic_pool, tree_pool  # beside this file

        for path, train in ((asked.table, logistic_pool), (asked.held_back, tree_pool)):
            if path:
                pool = train(path)
                pools |= {kind: (values, pool.groups) for kind, values in pool.kinds.items()}
    tallies: dict[tuple[str, str], Tally] = defaultdict(Tally)
    found = {name: one for name, one in contenders().items() if not asked.only or name in asked.only}
    for number, world in enumerate(worlds(asked.metric, asked.worlds, pools)):
        question = world.question
        of = {"kind": world.kind, "people": question.people(), "models": question.queries, "epsilon": world.epsilon}
        parts = ("", *(f"{by} {of[by]}" for by in asked.by))
        for name, (mechanism, delta) in found.items():
            tell(world, name, mechanism, delta, number, [tallies[name, part] for part in parts])
    print(f"{asked.metric}, intervals of 95%. ! marks a missed bar.\n")
    missed = False
    for (name, part), tally in sorted(tallies.items()):
        if tally.inside:
            low = line(f"  {part}" if part else name, tally)
            missed |= low and not part
    return int(missed and not asked.short)


if __name__ == "__main__":
    sys.exit(main())
