r"""What is shown in place of the deployed decisions: strategies of washing.

Each gets the deployed model's decisions d and its scores, and how probable each person is to be disadvantaged, p. The
gap is believed to be sum (1 - p) d / N1 - sum p d / N0 with N1 = sum (1 - p) and N0 = sum p: exact where p is 0 or 1.

* `flips`: the fewest decisions. To accept somebody who was rejected moves the believed gap by (1 - p) / N1 - p / N0,
  to reject somebody who was accepted by as much the other way: whose flip lessens it most is flipped first.
* The last four are manipulations of the fairwashing literature (ROC mitigation, label transport, linear relaxation, and
  a swap for group thresholds in "Robust ML auditing using prior knowledge", arXiv 2505.04796), written anew from what
  they minimise. They are for groups that are known: of p between 0 and 1 the N0 largest are taken for disadvantaged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Decisions = NDArray[np.uint8]
Belief = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Hand:
    """What a strategy has to go by.

    Attributes
    ----------
    deployed, scores : (n,), the decisions of the deployed model and the scores behind them, in [0, 1].
    fair : what a model decides that is fair on the public sample, (n,).
    belief : (n,), how probable each person is to be disadvantaged.
    aim : the absolute gap to come down to, as it is believed to be.
    bound : (n,), whose decisions cannot be flipped.
    rng : the developer's.
    """

    deployed: Decisions
    scores: NDArray[np.float64]
    fair: Callable[[], Decisions]
    belief: Belief
    aim: float
    bound: NDArray[np.bool_]
    rng: np.random.Generator

    @property
    def disadvantaged(self) -> NDArray[np.bool_]:
        """Who is taken for disadvantaged, (n,): as many as there are believed to be."""
        taken = np.zeros(len(self.belief), np.bool_)
        taken[np.argsort(-self.belief, kind="stable")[: round(self.belief.sum())]] = True
        return taken


def gap(decisions: NDArray[Any], belief: Belief) -> NDArray[np.float64]:
    """Give the believed gap, advantaged minus disadvantaged, of decisions (..., n); 0 where nobody is in a group."""
    advantaged, disadvantaged = (decisions @ part / max(part.sum(), 1e-12) for part in (1 - belief, belief))
    return np.asarray(advantaged - disadvantaged)


def _weights(belief: Belief) -> NDArray[np.float64]:
    """Give what each acceptance adds to the believed gap, (n,)."""
    advantaged, disadvantaged = (part / max(part.sum(), 1e-12) for part in (1 - belief, belief))
    return np.asarray(advantaged - disadvantaged)


def order(deployed: Decisions, belief: Belief) -> NDArray[np.intp]:
    """Give the people, (n,), in the order in which flipping their decision lessens the believed gap."""
    moves = np.where(deployed == 1, -1.0, 1.0) * _weights(belief)
    return np.argsort(moves if gap(deployed, belief) >= 0 else -moves, kind="stable")


def flipped(deployed: Decisions, people: NDArray[np.intp]) -> Decisions:
    """Flip the decisions about some people."""
    shown = deployed.copy()
    shown[people] = 1 - shown[people]
    return shown


def flips_to_pass(deployed: Decisions, people: NDArray[np.intp], belief: Belief, tau: float) -> int | None:
    """Count how many people, in their order, are flipped until the absolute gap is at most tau; None if it never is."""
    within = _path(deployed, people, belief) <= tau
    return int(np.argmax(within)) if within.any() else None


def _path(deployed: Decisions, people: NDArray[np.intp], belief: Belief) -> NDArray[np.float64]:
    """Give the absolute gap after each number of flips, from none on, but for what sums in another order differ by."""
    moves = np.where(deployed == 1, -1.0, 1.0) * _weights(belief)
    path: NDArray[np.float64] = np.abs(gap(deployed, belief) + np.append(0.0, np.cumsum(moves[people])))
    return path.round(12)


def honest(hand: Hand) -> Decisions:
    """Show what is deployed."""
    return hand.deployed


def majority(hand: Hand) -> Decisions:
    """Decide about everybody as about most: no gap at all."""
    return np.full_like(hand.deployed, hand.deployed.mean() >= 0.5)


def swap(hand: Hand) -> Decisions:
    """Show a fair model."""
    return hand.fair()


def flips(hand: Hand) -> Decisions:
    """Flip as few decisions as it takes, or where no number of them does, those that come nearest."""
    people = order(hand.deployed, hand.belief)
    people = people[~hand.bound[people]]
    count = flips_to_pass(hand.deployed, people, hand.belief, hand.aim)
    nearest = int(np.argmin(_path(hand.deployed, people, hand.belief)))
    return flipped(hand.deployed, people[: nearest if count is None else count])


def reject_option(hand: Hand) -> Decisions:
    """Decide for the disadvantaged and against the others where scores are least certain (Kamiran et al. 2012)."""
    favoured = hand.disadvantaged == (gap(hand.deployed, _known(hand)) >= 0)
    unsure = np.argsort(np.abs(hand.scores - 0.5), kind="stable")
    shown, best = hand.deployed.copy(), hand.deployed
    for person in unsure:
        if abs(gap(best, _known(hand))) <= hand.aim:
            break
        shown[person] = favoured[person]
        if abs(gap(shown, _known(hand))) < abs(gap(best, _known(hand))):
            best = shown.copy()
    return best


def label_transport(hand: Hand) -> Decisions:
    """Move the decisions of both groups to their barycentre: at a cost of 1 a flip, the larger group's rate stays.

    Who of the smaller group is flipped is drawn, see `order` for who is best flipped.
    """
    own = hand.disadvantaged if 2 * hand.disadvantaged.sum() <= len(hand.deployed) else ~hand.disadvantaged
    short = hand.deployed[own].mean() < hand.deployed[~own].mean()
    people = hand.rng.permutation(np.flatnonzero(own & (hand.deployed != short)))
    count = flips_to_pass(hand.deployed, people, _known(hand), hand.aim)
    return flipped(hand.deployed, people[: len(people) if count is None else count])


def linear_relaxation(hand: Hand) -> Decisions:
    r"""Take the nearest scores whose mean gap is within the aim, and decide by them.

    Nearest in cross-entropy, -sum y ln s + (1 - y) ln (1 - s), given |g's| <= aim with g = 1/N1 and -1/N0. Where the
    multiplier is l, the derivative is 0 for s - y + l g s (1 - s) = 0, and s > 1/2 where y > 1/2 + l g / 4.
    """
    known = _known(hand)
    g = _weights(known)
    y = np.clip(hand.scores, 1e-9, 1 - 1e-9)
    side = 1.0 if g @ y >= 0 else -1.0

    def nearest(weight: float) -> NDArray[np.float64]:
        a = side * weight * g
        # The root of a s^2 - (1 + a) s + y in (0, 1), written so that a = 0 needs no case of its own.
        return np.asarray(2 * y / (1 + a + np.sqrt((1 + a) ** 2 - 4 * a * y)))

    low, high = 0.0, 1.0
    while side * (g @ nearest(high)) > hand.aim and high < 1e9:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if side * (g @ nearest(middle)) > hand.aim else (low, middle)
    return (nearest(high) > 0.5).astype(np.uint8) if side * (g @ y) > hand.aim else hand.deployed


def group_thresholds(hand: Hand) -> Decisions:
    """Accept the same share of either group, those with the highest scores (Hardt et al. 2016, for parity)."""
    shown, share = np.zeros_like(hand.deployed), hand.deployed.mean()
    for group in (hand.disadvantaged, ~hand.disadvantaged):
        people = np.flatnonzero(group)
        shown[people[np.argsort(-hand.scores[people], kind="stable")[: round(share * len(people))]]] = 1
    return shown


def _known(hand: Hand) -> Belief:
    return hand.disadvantaged.astype(np.float64)


STRATEGIES: dict[str, Callable[[Hand], Decisions]] = {
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
"""The strategies that look at no belief about the audited people."""
