"""Scores of guesses. Only the referee can compute them, since it knows the protected attributes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairwall.arrays import Bools, Bytes
from fairwall.laws.metrics.metric import METRICS, strata_of


def leakage(guess: Bytes, protected: Bytes) -> float:
    """Return the balanced accuracy of a guess, in percent (Definition 5.1 of Hamman, Chen and Dutta, FAccT 2023).

    Both arrays, (n,), hold 0 and 1; `protected` must have both groups. A guess without any information reaches 50.
    """
    right = guess == protected
    return 50.0 * float(right[protected == 1].mean() + right[protected == 0].mean())


@dataclass(frozen=True)
class RevealScore:
    """The scores of a guess.

    Attributes
    ----------
    leakage, baseline_leakage : balanced accuracy in percent, with the answers and without any query.
    recovered : number of people guessed right.
    targeted, targeted_recovered : number of people that the strategy aims at, and of those guessed right.
    exact : whether everybody is guessed right.
    leakage_by_size, leakage_by_person : for a partition only, the leakage once the developer names the smaller group
        disadvantaged (None where it cannot tell which), and once it learns the group of the first person aimed at.
    """

    leakage: float
    baseline_leakage: float
    recovered: int
    targeted: int
    targeted_recovered: int
    exact: bool
    leakage_by_size: float | None = None
    leakage_by_person: float | None = None


def score(
    metric: str, labels: Bytes, protected: Bytes, guess: Bytes, baseline: Bytes, targeted: Bools, polarity_known: bool
) -> RevealScore:
    """Score a guess, up to polarity for absolute gaps. Parameters as in `score_guess` and `score_partition`."""
    if METRICS[metric].absolute:
        return score_partition(guess, baseline, targeted, protected, polarity_known, strata_of(metric, labels))
    return score_guess(guess, baseline, targeted, protected)


def score_guess(guess: Bytes, baseline: Bytes, targeted: Bools, protected: Bytes) -> RevealScore:
    """Score a guess that names the groups; arrays are (n,), and `baseline` is the guess without any query."""
    right = guess == protected
    return RevealScore(
        leakage=leakage(guess, protected),
        baseline_leakage=leakage(baseline, protected),
        recovered=int(right.sum()),
        targeted=int(targeted.sum()),
        targeted_recovered=int(right[targeted].sum()),
        exact=bool(right.all()),
    )


def score_partition(
    guess: Bytes, baseline: Bytes, targeted: Bools, protected: Bytes, polarity_known: bool, strata: Sequence[Bools]
) -> RevealScore:
    """Score a partition of the targeted people into two groups: up to polarity, then after naming the groups.

    An absolute gap is the same for a partition and its mirror image, so the better of the two counts. With two strata
    each has a mirror image of its own, and one known person of its own. Parameters are those of `score_guess`,
    `polarity_known` (whether the developer named the groups) and `strata`, the people that the metric is about, each
    (n,).
    """
    plain = score_guess(guess, baseline, targeted, protected)
    best, by_person = plain, guess.copy()
    for turned in itertools.product((False, True), repeat=len(strata)):
        flips = np.zeros(len(guess), np.bool_)
        for stratum, turn in zip(strata, turned, strict=True):
            flips |= stratum & targeted & turn
        mirrored = np.where(flips, 1 - guess, guess).astype(np.uint8)
        score = score_guess(mirrored, baseline, targeted, protected)
        best = max(best, score, key=lambda score: (score.leakage, score.recovered))
    for stratum in strata:
        inside = np.flatnonzero(stratum & targeted)
        if len(inside) and guess[inside[0]] != protected[inside[0]]:
            by_person[inside] = 1 - guess[inside]
    by_size = plain.leakage if polarity_known else None
    return replace(best, leakage_by_size=by_size, leakage_by_person=leakage(by_person, protected))
