r"""Washing strategies: decisions shown to the audit in place of the deployed ones.

Each gets the deployed model's decisions d, its scores, and each person's probability of being disadvantaged, p. The
believed gap is sum (1 - p) d / N1 - sum p d / N0 with N1 = sum (1 - p) and N0 = sum p: exact where p is 0 or 1.

* `flips`: the fewest decisions. Accepting a rejected person moves the believed gap by (1 - p) / N1 - p / N0, rejecting
  an accepted one by as much the other way: the flip that reduces it most comes first.
* The last four are manipulations of the fairwashing literature (ROC mitigation, label transport, linear relaxation, and
  a swap for group thresholds in "Robust ML auditing using prior knowledge", arXiv 2505.04796), reimplemented from their
  objectives. They assume known groups: for p between 0 and 1 the N0 largest count as disadvantaged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairwall.arrays import Bools, Bytes, Floats

Decisions = Bytes
Belief = Floats


@dataclass(frozen=True, eq=False)
class WashInputs:
    """The inputs of a strategy.

    Attributes
    ----------
    deployed, scores : (n,), the decisions of the deployed model and the scores behind them, in [0, 1].
    fair : returns decisions, (n,), that are fair on the public sample.
    belief : (n,), each person's probability of being disadvantaged.
    aim : the absolute believed gap to reach.
    bound : (n,), mask of the decisions that cannot be flipped.
    """

    deployed: Decisions
    scores: Floats
    fair: Callable[[], Decisions]
    belief: Belief
    aim: float
    bound: Bools
    rng: np.random.Generator

    @property
    def disadvantaged(self) -> Bools:
        """Mask, (n,), of the people counted as disadvantaged, as many as believed."""
        taken = np.zeros(len(self.belief), np.bool_)
        taken[np.argsort(-self.belief, kind="stable")[: round(self.belief.sum())]] = True
        return taken


def gap(decisions: NDArray[Any], belief: Belief) -> Floats:
    """Return the believed gap, advantaged minus disadvantaged, of decisions (..., n); 0 where nobody is in a group."""
    advantaged, disadvantaged = (decisions @ part / max(part.sum(), 1e-12) for part in (1 - belief, belief))
    return np.asarray(advantaged - disadvantaged)


def _weights(belief: Belief) -> Floats:
    """Return the change of the believed gap by each acceptance, (n,)."""
    advantaged, disadvantaged = (part / max(part.sum(), 1e-12) for part in (1 - belief, belief))
    return np.asarray(advantaged - disadvantaged)


def order(deployed: Decisions, belief: Belief) -> NDArray[np.intp]:
    """Return the people, (n,), by how much flipping their decision reduces the believed gap, the most first."""
    moves = np.where(deployed == 1, -1.0, 1.0) * _weights(belief)
    return np.argsort(moves if gap(deployed, belief) >= 0 else -moves, kind="stable")


def flipped(deployed: Decisions, people: NDArray[np.intp]) -> Decisions:
    """Return the decisions with those about some people flipped."""
    shown = deployed.copy()
    shown[people] = 1 - shown[people]
    return shown


def flips_to_pass(deployed: Decisions, people: NDArray[np.intp], belief: Belief, tau: float) -> int | None:
    """Return the number of flips, in the people's order, until the absolute gap is at most tau, or None for never."""
    within = _path(deployed, people, belief) <= tau
    return int(np.argmax(within)) if within.any() else None


def _path(deployed: Decisions, people: NDArray[np.intp], belief: Belief) -> Floats:
    """Return the absolute gap after each number of flips, from none on, rounded to hide the order of summation."""
    moves = np.where(deployed == 1, -1.0, 1.0) * _weights(belief)
    path: Floats = np.abs(gap(deployed, belief) + np.append(0.0, np.cumsum(moves[people])))
    return path.round(12)


def honest(inputs: WashInputs) -> Decisions:
    """Return the deployed decisions."""
    return inputs.deployed


def majority(inputs: WashInputs) -> Decisions:
    """Return the majority's decision for everybody: no gap at all."""
    return np.full_like(inputs.deployed, inputs.deployed.mean() >= 0.5)


def swap(inputs: WashInputs) -> Decisions:
    """Return the decisions of a fair model."""
    return inputs.fair()


def flips(inputs: WashInputs) -> Decisions:
    """Return decisions with the fewest flips that reach the aim, or else with the flips that come nearest."""
    people = order(inputs.deployed, inputs.belief)
    people = people[~inputs.bound[people]]
    count = flips_to_pass(inputs.deployed, people, inputs.belief, inputs.aim)
    nearest = int(np.argmin(_path(inputs.deployed, people, inputs.belief)))
    return flipped(inputs.deployed, people[: nearest if count is None else count])


def reject_option(inputs: WashInputs) -> Decisions:
    """Decide for the disadvantaged and against the others where scores are least certain (Kamiran et al. 2012)."""
    favoured = inputs.disadvantaged == (gap(inputs.deployed, _known(inputs)) >= 0)
    unsure = np.argsort(np.abs(inputs.scores - 0.5), kind="stable")
    shown, best = inputs.deployed.copy(), inputs.deployed
    for person in unsure:
        if abs(gap(best, _known(inputs))) <= inputs.aim:
            break
        shown[person] = favoured[person]
        if abs(gap(shown, _known(inputs))) < abs(gap(best, _known(inputs))):
            best = shown.copy()
    return best


def label_transport(inputs: WashInputs) -> Decisions:
    """Move both groups' decisions to their barycentre: at a cost of 1 per flip, the larger group's rate stays.

    The flipped people of the smaller group are drawn at random; `order` would choose the best ones.
    """
    own = inputs.disadvantaged if 2 * inputs.disadvantaged.sum() <= len(inputs.deployed) else ~inputs.disadvantaged
    short = inputs.deployed[own].mean() < inputs.deployed[~own].mean()
    people = inputs.rng.permutation(np.flatnonzero(own & (inputs.deployed != short)))
    count = flips_to_pass(inputs.deployed, people, _known(inputs), inputs.aim)
    return flipped(inputs.deployed, people[: len(people) if count is None else count])


def linear_relaxation(inputs: WashInputs) -> Decisions:
    r"""Return the decisions by the nearest scores whose mean gap is within the aim.

    Nearest in cross-entropy, -sum y ln s + (1 - y) ln (1 - s), given |g's| <= aim with g = 1/N1 and -1/N0. Where the
    multiplier is l, the derivative is 0 for s - y + l g s (1 - s) = 0, and s > 1/2 where y > 1/2 + l g / 4.
    """
    known = _known(inputs)
    g = _weights(known)
    y = np.clip(inputs.scores, 1e-9, 1 - 1e-9)
    side = 1.0 if g @ y >= 0 else -1.0

    def nearest(weight: float) -> Floats:
        a = side * weight * g
        # The root of a s^2 - (1 + a) s + y in (0, 1), written so that a = 0 needs no case of its own.
        return np.asarray(2 * y / (1 + a + np.sqrt((1 + a) ** 2 - 4 * a * y)))

    low, high = 0.0, 1.0
    while side * (g @ nearest(high)) > inputs.aim and high < 1e9:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if side * (g @ nearest(middle)) > inputs.aim else (low, middle)
    return (nearest(high) > 0.5).astype(np.uint8) if side * (g @ y) > inputs.aim else inputs.deployed


def group_thresholds(inputs: WashInputs) -> Decisions:
    """Accept the same share of either group, those with the highest scores (Hardt et al. 2016, for parity)."""
    shown, share = np.zeros_like(inputs.deployed), inputs.deployed.mean()
    for group in (inputs.disadvantaged, ~inputs.disadvantaged):
        people = np.flatnonzero(group)
        shown[people[np.argsort(-inputs.scores[people], kind="stable")[: round(share * len(people))]]] = 1
    return shown


def _known(inputs: WashInputs) -> Belief:
    return inputs.disadvantaged.astype(np.float64)


STRATEGIES: dict[str, Callable[[WashInputs], Decisions]] = {
    "honest": honest,
    "majority": majority,
    "swap": swap,
    "flips": flips,
    "reject-option": reject_option,
    "label-transport": label_transport,
    "linear-relaxation": linear_relaxation,
    "group-thresholds": group_thresholds,
}

BLIND = ("honest", "majority", "swap")
"""The strategies that use no belief about the audited people."""
