"""The line of a disclosure trial, and the summary of a cell's lines."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fairwall.laws.disclosure import PRIOR, advantage, bound, bound_applies
from sim.games.disclosure.deal import DisclosureDeal
from sim.games.disclosure.outcome import DisclosureOutcome
from sim.games.disclosure.scenario import DisclosureScenario
from sim.games.game import Line
from sim.games.summary import counts, mean
from sim.report.estimates import share_interval
from sim.scenarios.scenario import plain
from sim.scenarios.sweep import Cell


def record(
    _cell: Cell[DisclosureScenario], _trial: int, dealt: DisclosureDeal, outcome: DisclosureOutcome
) -> list[Line]:
    """Return the trial's line, with the score of the developer's belief.

    `posterior` is the probability of yes, `posterior_of_truth` that of the true answer; `advantage_law` is the largest
    advantage under the public noise distribution, given the developer's knowledge. Where records were released,
    `linked` is whether the record that the developer named is Alice's, one of `candidates` like hers among `people`.
    """
    belief, known = outcome.belief, dealt.known
    return [
        {
            "mode": known.mode,
            "people": len(dealt.study.answers),
            "takes_part": dealt.place is not None,
            "others": known.others,
            "epsilon": plain(known.epsilon),
            "secret": dealt.secret,
            "prior": PRIOR,
            "posterior": belief.posterior,
            "posterior_of_truth": belief.posterior if dealt.secret else 1 - belief.posterior,
            "guess": int(belief.guess),
            "right": int(belief.guess) == dealt.secret,
            "advantage_law": advantage(known),
            "bound": bound(known.epsilon),
            "bound_applies": bound_applies(known.mode),
            "linked": None if belief.record is None else belief.record == dealt.place,
            "candidates": belief.candidates,
            "epsilon_spent": plain(outcome.report.epsilon_spent),
        }
    ]


def summarise(swept: Mapping[str, Any], lines: Sequence[Line]) -> Line:
    """Return the summary of a cell; the advantage is None where the secret was never 0, or never 1."""
    trials = len(lines)
    found = _advantage(lines)
    named = [line for line in lines if line["linked"] is not None]
    return {
        **swept,
        "trials": trials,
        **{key: lines[0][key] for key in ("mode", "epsilon", "prior", "bound", "bound_applies", "epsilon_spent")},
        "takes_part": sum(line["takes_part"] for line in lines) / trials,
        "posterior_of_truth": mean(lines, "posterior_of_truth"),
        "right": sum(line["right"] for line in lines),
        **dict(zip(("advantage", "advantage_low", "advantage_high"), found, strict=True)),
        "advantage_law": mean(lines, "advantage_law"),
        "named": len(named),
        **counts(named, ["linked"]),
        "linked_prior": 1 / named[0]["people"] if named else None,
        "linked_law": float(np.mean([1 / line["candidates"] for line in named])) if named else None,
        "unique": float(np.mean([line["candidates"] == 1 for line in named])) if named else None,
    }


def _advantage(lines: Sequence[Line]) -> tuple[float, float, float] | tuple[None, None, None]:
    """Return P(guess 1 | secret 1) - P(guess 1 | secret 0) and its 95% interval, or None where a secret never occurred.

    Newcombe's interval for a difference of two independent shares (Statistics in Medicine 1998, 17, 873-890): the
    distances of each share to its limits, squared and added, with Clopper and Pearson's limits in place of Wilson's.
    With 8 or 30 trials of each secret it covers at least 95.8% of the time (exact, on a grid of both probabilities).
    """
    shares = []
    for secret in (1, 0):
        guesses = [line["guess"] for line in lines if line["secret"] == secret]
        if not guesses:
            return None, None, None
        shares.append((sum(guesses) / len(guesses), *share_interval(sum(guesses), len(guesses))))
    (yes, yes_low, yes_high), (no, no_low, no_high) = shares
    difference = yes - no
    low = difference - math.hypot(yes - yes_low, no_high - no)
    return difference, low, difference + math.hypot(yes_high - yes, no - no_low)
