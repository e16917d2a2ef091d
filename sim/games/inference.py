"""The distribution-inference game, in which an outsider is to tell which group a model was trained on.

One trial is one split of the table: the referee holds back test rows, gives the developer and the adversary halves of
the rest, and flips a bit for each of the victims that the developer trains. Trials are the clusters over which
intervals are taken, since victims of one split share their rows.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairwall.learning.fairness import Leakage, leakage
from sim import datasets
from sim.advantage import measure
from sim.datasets import Table
from sim.deal import DealError, party_seed
from sim.scenario import Cell, Scenario

TEST_SHARE, TEST_MOST = 0.2, 4000
"""The part of the table that the referee holds back to measure models on."""

MEMBERS_MOST = 2000
"""How many of the developer's rows models are asked about, to compare them with rows nobody trained on."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of the table: features (rows, d), labels (rows,), groups (attributes, rows), and their numbers in it."""

    features: NDArray[np.float64]
    labels: NDArray[np.uint8]
    groups: NDArray[np.uint8]
    numbers: NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class InferenceDeal:
    """One trial's cards. The bits go to the developer and stay with the referee."""

    deal_id: str
    scenario: Scenario
    bits: NDArray[np.uint8] = field(repr=False)
    developer: Rows
    adversary: Rows
    test: Rows
    seeds: dict[str, bytes] = field(repr=False)


@dataclass(frozen=True, eq=False)
class InferenceOutcome:
    """What the parties submitted: scores (models, rows) of test and member rows, and guesses (attacks, models)."""

    scores: NDArray[np.float64]
    base_scores: NDArray[np.float64]
    member_scores: NDArray[np.float64]
    base_member_scores: NDArray[np.float64]
    guesses: NDArray[np.uint8]


def deal(cell: Cell, trial: int, deal_id: str) -> InferenceDeal:
    """Draw the cards of one trial, a function of the cell's scenario and ``seed + trial`` alone.

    The split and the bits do not depend on the defence: cells of a sweep are played on the same ones.

    Raises
    ------
    DealError
        If a part of the table would miss a label or a group.
    DataError
        If the table cannot be loaded.
    """
    scenario = cell.scenario
    seed = scenario.scenario.seed + trial
    rng = np.random.default_rng(int.from_bytes(party_seed(seed, "referee"), "big"))
    table = _table(scenario)
    order = rng.permutation(len(table.labels))
    held_back = min(TEST_MOST, int(TEST_SHARE * len(order)))
    test, rest = order[:held_back], order[held_back:]
    half = len(rest) // 2
    parts = {"test": test, "developer": rest[:half], "adversary": rest[half:]}
    for name, rows in parts.items():
        cells = {(int(y), int(a)) for y, a in zip(table.labels[rows], table.protected[rows], strict=True)}
        if len(cells) < 4:
            raise DealError(f"data.source: {table.name} has too few rows: the {name}'s part misses a label or a group")
    return InferenceDeal(
        deal_id=deal_id,
        scenario=scenario,
        bits=_bits(scenario.developer.victims, rng),
        developer=_rows(table, parts["developer"]),
        adversary=_rows(table, parts["adversary"]),
        test=_rows(table, parts["test"]),
        seeds={party: party_seed(seed, party) for party in ("developer", "adversary")},
    )


def _bits(victims: int, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Flip a coin for every victim; again if all fell alike, since an advantage is a difference of two rates."""
    while True:
        bits = rng.integers(0, 2, victims).astype(np.uint8)
        if 0 < bits.sum() < victims:
            return bits


def _table(scenario: Scenario) -> Table:
    data = scenario.data
    roles = ("protected", "advantaged", "disadvantaged", "label", "positive")
    return _load(data.source, data.drop, tuple((role, getattr(data, role)) for role in roles))


@functools.lru_cache(maxsize=4)
def _load(source: str, drop: tuple[str, ...], roles: tuple[tuple[str, str | None], ...]) -> Table:
    return datasets.load(source, drop=drop, **dict(roles))


def _rows(table: Table, numbers: NDArray[np.intp]) -> Rows:
    return Rows(
        table.features[numbers],
        table.labels[numbers].astype(np.uint8),
        table.protected[numbers].astype(np.uint8)[np.newaxis],
        numbers,
    )


def record(
    cell: Cell, trial: int, dealt: InferenceDeal, outcome: InferenceOutcome, seconds: float
) -> list[dict[str, Any]]:
    """Write down one trial: a line for each attack.

    Rates and bounds are of the models' decisions on the test rows, averaged over the victims; gaps in percentage
    points, accuracies in percent. Whether a bound holds is asked of every victim, with the sampling error that the
    corrected bounds state for it.
    """
    scenario, test = cell.scenario, dealt.test
    base, tuned = (_measured(scores, test) for scores in (outcome.base_scores, outcome.scores))
    ones, zeros = dealt.bits == 1, dealt.bits == 0
    members = slice(0, outcome.member_scores.shape[1])
    common = {
        "victims": len(dealt.bits),
        "gap_base": _points(base.gap),
        "gap": _points(tuned.gap),
        "eo_base": _points(base.eo),
        "eo": _points(tuned.eo),
        "ppr_gap": _points(tuned.ppr_gap),
        "label_gap": 100 * tuned.dpi,
        "w": tuned.w,
        "accuracy_base": _points(base.accuracy.mean(axis=0)),
        "accuracy": _points(tuned.accuracy.mean(axis=0)),
        "below_tau": int((tuned.gap <= 0.05).sum()),
        "bound_holds": bool((np.maximum(tuned.gap, tuned.ppr_gap) <= tuned.printed_bound + tuned.drift).all()),
        "corrected_bound_holds": bool(
            ((tuned.ppr_gap <= tuned.ppr_bound + tuned.drift) & (tuned.gap <= tuned.accuracy_bound + tuned.drift)).all()
        ),
        "sampling_error": float(tuned.drift.max()),
        "membership_base": _membership(outcome.base_scores, outcome.base_member_scores, dealt, members),
        "membership": _membership(outcome.scores, outcome.member_scores, dealt, members),
    }
    lines = []
    for attack, guesses in zip(scenario.adversary.attack, outcome.guesses, strict=True):
        says = float(guesses[ones].mean() - guesses[zeros].mean())
        lines.append(
            {
                "trial": trial,
                "seed": scenario.scenario.seed + trial,
                "game": "inference",
                "seconds": round(seconds, 4),
                **cell.swept,
                "split_seed": scenario.scenario.seed + trial,
                "defence": scenario.developer.defence,
                "lambda": scenario.developer.strength,
                "rehearsal": scenario.developer.rehearsal,
                "attack": attack,
                "attacks": len(scenario.adversary.attack),
                "correct_b0": int((guesses[zeros] == 0).sum()),
                "correct_b1": int((guesses[ones] == 1).sum()),
                "victims_b1": int(ones.sum()),
                "advantage": abs(says),
                "signed_advantage": says,
                **common,
            }
        )
    return lines


def _measured(scores: NDArray[np.float64], test: Rows) -> Leakage:
    return leakage(scores >= 0.5, test.labels, test.groups[0])


def _points(values: NDArray[np.float64]) -> float:
    return 100 * float(np.mean(values))


def _membership(
    scores: NDArray[np.float64], member_scores: NDArray[np.float64], dealt: InferenceDeal, members: slice
) -> float:
    """Measure how well a model's loss tells rows it was trained on from rows of the same group that it was not.

    The area under the ROC curve of the loss threshold test (Yeom et al., CSF 2018), averaged over the victims; 0.5 is a
    coin. Fairness constraints can raise it (Chang and Shokri, EuroS&P 2021).
    """
    own, test = dealt.developer, dealt.test
    areas = []
    for k, bit in enumerate(dealt.bits):
        inside, outside = own.groups[0][members] == bit, test.groups[0] == bit
        losses = (
            np.abs(own.labels[members][inside] - member_scores[k][inside]),
            np.abs(test.labels[outside] - scores[k][outside]),
        )
        areas.append(_area(*losses))
    return float(np.mean(areas))


def _area(members: NDArray[np.float64], others: NDArray[np.float64]) -> float:
    """Give P(a member's loss is smaller than another row's), ties counted half."""
    ordered = np.sort(others)
    above = len(others) - np.searchsorted(ordered, members, side="right")
    ties = np.searchsorted(ordered, members, side="right") - np.searchsorted(ordered, members, side="left")
    return float((above + ties / 2).mean() / len(others))


_MEANS = (
    "gap_base",
    "gap",
    "eo_base",
    "eo",
    "ppr_gap",
    "label_gap",
    "w",
    "accuracy_base",
    "accuracy",
    "membership_base",
    "membership",
)

FAMILY_LEVEL = 0.001
"""What the intervals that are to hold for all attacks at once may miss."""


def summarise(lines: Sequence[Mapping[str, Any]], swept: Sequence[str]) -> dict[str, Any]:
    """Sum up one attack on one cell, from its lines of ``trials.jsonl``.

    Returns
    -------
    dict
        The swept values; ``attack``, ``defence``; ``splits``, ``victims``, how many in all; ``accuracy_b``, balanced
        accuracy at guessing b in percent, with ``accuracy_b_low`` and ``accuracy_b_high`` at 95%, and
        ``family_low``, ``family_high`` that hold for all attacks of the cell at once at 99.9%; ``advantage`` likewise
        with ``advantage_low`` and ``advantage_high``; means over the splits of what is named alike in a trial;
        ``below_tau``, how many victims' gap is at most 0.05; how many splits the bounds held in.
    """
    first = lines[0]
    bits, guesses, splits = (np.concatenate(parts) for parts in zip(*map(_victims, lines), strict=True))
    # The same number of attacks is tried on every cell.
    attacks = int(first["attacks"])
    own = measure(bits, guesses, splits)
    family = measure(bits, guesses, splits, level=FAMILY_LEVEL, attacks=attacks)
    cell: dict[str, Any] = {key: first[key] for key in swept}
    cell |= {key: first[key] for key in ("attack", "defence", "lambda", "rehearsal")}
    cell |= {"splits": len(lines), "trials": len(lines), "victims": len(bits)}
    for name, interval in (("accuracy_b", own.accuracy), ("family", family.accuracy)):
        cell[f"{name}_low"], cell[f"{name}_high"] = interval.low, interval.high
    cell["accuracy_b"] = own.accuracy.value
    cell["advantage"] = own.advantage.value
    cell["advantage_low"], cell["advantage_high"] = own.advantage.low, own.advantage.high
    for key in _MEANS:
        cell[key] = float(np.mean([line[key] for line in lines]))
    cell["below_tau"] = sum(line["below_tau"] for line in lines)
    for key in ("bound_holds", "corrected_bound_holds"):
        cell[key] = sum(line[key] for line in lines)
    return cell


def _victims(line: Mapping[str, Any]) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """Write a split's victims out, one by one: bits, guesses, and the split's number."""
    b1, total = line["victims_b1"], line["victims"]
    b0 = total - b1
    bits = np.repeat([0, 1], [b0, b1])
    ones = b0 - line["correct_b0"]
    guesses = np.repeat([1, 0, 1, 0], [ones, b0 - ones, line["correct_b1"], b1 - line["correct_b1"]])
    return bits, guesses, np.full(total, line["split_seed"])
