"""What a guess is worth. Only the referee's side, which knows the protected attributes, can tell."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fairwall.laws.metric import METRICS, strata_of


def leakage(guess: NDArray[np.uint8], protected: NDArray[np.uint8]) -> float:
    """Measure the balanced accuracy of a guess, in percent (Definition 5.1 of Hamman, Chen and Dutta, FAccT 2023).

    Both arrays, of shape (n,), hold 0 and 1; both groups occur in ``protected``. 50 is what a guess without any
    information reaches.
    """
    right = guess == protected
    return 50.0 * float(right[protected == 1].mean() + right[protected == 0].mean())


@dataclass(frozen=True)
class RevealScore:
    """A guess, scored.

    Attributes
    ----------
    leakage, baseline_leakage : balanced accuracy in percent, with the answers and without any query.
    recovered : how many people are guessed right.
    targeted, targeted_recovered : how many the strategy set out to reveal, and how many of these are guessed right.
    exact : whether everybody is guessed right.
    leakage_by_size, leakage_by_person : for a partition alone: the leakage once the developer takes the smaller group
        for the disadvantaged one (None where the groups are alike in size), and once it learns of one person, the
        first, which group is theirs.
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
    metric: str,
    labels: NDArray[np.uint8],
    protected: NDArray[np.uint8],
    guess: NDArray[np.uint8],
    baseline: NDArray[np.uint8],
    targeted: NDArray[np.bool_],
    polarity_known: bool,
) -> RevealScore:
    """Score a guess by what the metric lets it know: of an absolute gap up to polarity.

    Parameters as in :func:`score_guess` and :func:`score_partition`; ``labels``, shape (n,), tell whom the metric
    looks at.
    """
    if METRICS[metric].absolute:
        return score_partition(guess, baseline, targeted, protected, polarity_known, strata_of(metric, labels))
    return score_guess(guess, baseline, targeted, protected)


def score_guess(
    guess: NDArray[np.uint8],
    baseline: NDArray[np.uint8],
    targeted: NDArray[np.bool_],
    protected: NDArray[np.uint8],
) -> RevealScore:
    """Score a guess that names the groups.

    Arrays have shape (n,); ``baseline`` is the guess without any query.
    """
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
    guess: NDArray[np.uint8],
    baseline: NDArray[np.uint8],
    targeted: NDArray[np.bool_],
    protected: NDArray[np.uint8],
    polarity_known: bool,
    strata: Sequence[NDArray[np.bool_]],
) -> RevealScore:
    """Score a partition of the targeted people into two groups: up to polarity, then after naming the groups.

    The metric is an absolute gap, which is the same for a partition and its mirror image; so the partition is
    worth what the better of the two is worth. Where the metric has two strata each has an image of its own, and so has
    its one known person. Parameters as in :func:`score_guess`, whether the developer named the groups, and whom the
    metric looks at, stratum by stratum, each of shape (n,).
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
