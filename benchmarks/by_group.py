"""Rates by group: their median error beside Laplace noise on each rate, and what a whole batch tells of who is who.

    python benchmarks/by_group.py [--draws 200]

Errors are on Adult, 3,000 people drawn anew each time, ten groups by race and sex, selection rates of one model.
Laplace noise is on each of the ten rates, at a tenth of epsilon each and scaled to what one person moves that very
group's rate by (alone), or on all of them together, scaled to the l1 distance for the two smallest groups (together).
Both are told all groups' exact sizes. All are cut off at 0 and 1.

The attack spends a batch on models that part 2,000 people into as many strata as one table may have, and says of each
person which group it is, by the posterior mean of the group's count in the stratum over what chance would make of it.
It is told the groups' shares. Right is the mean over groups of the share of its people who are named right.

Last, models that decide by coins, epsilon 1, 3,000 people of groups alike: what is released of each is wrong by so many
people (hits less the exact rate times the size), by tables, a part of epsilon each or one together, and by rows.
"""

from __future__ import annotations

import argparse
import math

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom
from short import parsed

from compliance.answers.groups import released
from compliance.noise.sampling import Seeded
from compliance.records.groups import Attribute, Grouped
from fairwall.client.by_group import ByGroup
from fairwall.compliance.v1 import group_service_pb2 as wire
from fairwall.laws.groups.group_counts import PEOPLE_A_STRATUM, balanced, noise_rate
from fairwall.laws.groups.group_tables import NoisyTable
from fairwall.rpc.arrays import from_message
from fairwall.tables import columns
from fairwall.tables.reading import read
from fairwall.tables.values import ColumnValues
from sim.datasets import SHIPPED

EPSILONS = (0.3, 1.0, 3.0)
PEOPLE, ATTACKED = 3_000, 2_000
SHARES = {"2 groups, 10%": (0.1, 0.9), "2 groups, 50%": (0.5, 0.5), "10 groups alike": (0.1,) * 10}


def adult() -> tuple[Grouped, NDArray[np.float64]]:
    """Read the table, by race and sex, and decide by its education and age."""
    names = ("race", "sex", "income", "education-num", "age")
    table = read(SHIPPED["adult"].path, "adult", names)
    race, sex, income = (ColumnValues.of("adult", name, table) for name in names[:3])
    education, age = (columns.TypedColumn.of("adult", name, table).numbers() for name in names[3:])
    attributes = (Attribute("race", race.values), Attribute("sex", sex.values))
    people = Grouped(attributes, np.array([race.codes, sex.codes], np.uint8), income.having(">50K").astype(np.uint8))
    return people, (education + age / 20 > 13).astype(np.float64)


def errors(epsilon: float, draws: int) -> dict[str, NDArray[np.float64]]:
    """Median errors of each group, by what answers; NaN where a draw lacks a group."""
    everybody, chosen = adult()
    cell, groups = everybody.cells(("race", "sex"))
    rng = np.random.default_rng(1)
    header = wire.ByGroupHeader(by=("race", "sex"), measures=[wire.MEASURE_SELECTION_RATE], epsilon=epsilon)
    found: dict[str, list[NDArray[np.float64]]] = {"counts": [], "alone": [], "together": []}
    for _ in range(draws):
        drawn = rng.permutation(len(chosen))[:PEOPLE]
        sizes = np.bincount(cell[drawn], minlength=groups)
        if not sizes.all():
            continue
        exact = np.bincount(cell[drawn], chosen[drawn], groups) / sizes
        some = Grouped(everybody.attributes, everybody.codes[:, drawn], everybody.labels[drawn])
        (told,) = released(some, header, chosen[drawn][np.newaxis], Seeded(rng)).tables
        base, hits = (np.asarray(from_message(part))[0] == 1 for part in (told.base, told.hits))
        share = NoisyTable(np.asarray(from_message(told.counts), np.float64), told.rate).share(base, hits)
        found["counts"].append(np.abs(share.estimate - exact))
        smallest = np.sort(sizes)
        scales = {"alone": groups / sizes, "together": 1 / smallest[0] + 1 / (smallest[1] + 1)}
        for name, scale in scales.items():
            noisy = np.clip(exact + scale / epsilon * rng.laplace(size=groups), 0, 1)
            found[name].append(np.abs(noisy - exact))
    return {name: np.array(each) for name, each in found.items()}


def named_right(shares: tuple[float, ...], epsilon: float, size: int, draws: int) -> float:
    """Attack tables of strata of so many people; how often a person is named right, groups counted equally."""
    rng = np.random.default_rng(2)
    groups, strata = len(shares), ATTACKED // size
    noise = balanced(rng, noise_rate(epsilon), 20_000, groups).reshape(-1)
    values, times = np.unique(noise, return_counts=True)
    law = np.zeros(2 * max(abs(values)) + 1)
    law[values + max(abs(values))] = times / times.sum()
    right = np.zeros(groups)
    people = np.zeros(groups)
    for _ in range(draws):
        group = rng.choice(groups, (strata, size), p=shares)
        counts = np.stack([np.bincount(row, minlength=groups) for row in group])
        noisy = counts + balanced(rng, noise_rate(epsilon), strata, groups)
        possible = np.arange(size + 1)
        score = np.empty(counts.shape)
        for place, share in enumerate(shares):
            apart = noisy[:, place, np.newaxis] - possible + max(abs(values))
            likely = np.where((apart >= 0) & (apart < len(law)), law[np.clip(apart, 0, len(law) - 1)], 0) + 1e-300
            weights = likely * binom.pmf(possible, size, share)
            score[:, place] = (weights @ possible) / weights.sum(axis=1) / share
        guess = score.argmax(axis=1)
        people += np.bincount(group.reshape(-1), minlength=groups)
        right += np.bincount(guess, counts[np.arange(strata), guess], groups)
    return float((right / people).mean())


def of_many(models: int, groups: int, draws: int, worth: float) -> NDArray[np.float64]:
    """How many people the selection rates of all models are wrong by: by tables where rows are worth 0."""
    rng = np.random.default_rng(3)
    header = wire.ByGroupHeader(by=("group",), measures=[wire.MEASURE_SELECTION_RATE], epsilon=1.0)
    values, found = tuple(map(str, range(groups))), list[NDArray[np.float64]]()
    for _ in range(draws):
        cells, decisions = rng.integers(0, groups, PEOPLE), rng.integers(0, 2, (models, PEOPLE)).astype(np.float64)
        people = Grouped((Attribute("group", values),), cells[np.newaxis].astype(np.uint8), np.zeros(PEOPLE, np.uint8))
        told = released(people, header, decisions, Seeded(rng), worth=worth)
        every = tuple((value,) for value in values)
        counts = ByGroup(("group",), every, ("selection_rate",), models, told, 0.0, 1.0, 0.0, 0.0)
        for model in range(models):
            share = counts.share("selection_rate", model)
            found.append(share.top - np.bincount(cells, decisions[model]) / np.bincount(cells) * share.bottom)
    return np.abs(found)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=200)
    draws = parsed(parser, draws=2).draws
    print("epsilon  median error  Laplace alone  together  ratios      least ratio of a group to alone")
    for epsilon in EPSILONS:
        found = errors(epsilon, draws)
        counts, alone, together = (float(np.median(each)) for each in found.values())
        by_group = np.median(found["alone"], axis=0) / np.maximum(np.median(found["counts"], axis=0), 1e-12)
        print(
            f"{epsilon:7g}  {counts:12.4f}  {alone:13.4f}  {together:8.4f}  "
            f"{alone / max(counts, 1e-12):4.1f} {together / max(counts, 1e-12):5.1f}  {by_group.min():.1f}"
        )
    print("\npeople named right, where chance names 1/groups right")
    print("world            epsilon  guess  strata of 1  of 10  of", PEOPLE_A_STRATUM)
    for world, shares in SHARES.items():
        for epsilon in EPSILONS:
            sizes = (1, 10, PEOPLE_A_STRATUM)
            rights = "  ".join(f"{named_right(shares, epsilon, size, draws // 10):.3f}" for size in sizes)
            print(f"{world:15}  {epsilon:7g}  {1 / len(shares):.3f}  {rights}")
    print("\nmodels  groups  tables: median  rms   95%    rows: median  rms   95%    times less")
    for models in (2, 5, 25, 100):
        for groups in (2, 5, 10):
            told = [of_many(models, groups, max(2, 2 * draws // models), worth) for worth in (0.0, math.inf)]
            tables, rows = (
                np.array([np.median(each), np.sqrt(np.mean(each**2)), np.quantile(each, 0.95)]) for each in told
            )
            numbers = ("  ".join(f"{number:6.1f}" for number in each) for each in (tables, rows))
            less = " ".join(f"{number:4.1f}" for number in tables / rows)
            print(f"{models:6}  {groups:6}  {'    '.join(numbers)}    {less}")


if __name__ == "__main__":
    main()
