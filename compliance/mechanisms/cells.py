"""Noisy counts of disadvantaged people in cells of similar predictions: one purchase answers a batch, and later ones.

`fairwall.laws.choice.cell_partition` has the partition and the noise, `fairwall.laws.choice.cell_purchases` the content
of a purchase, and `fairwall.laws.choice.posterior` the answers: the joint posterior mean of all sums of the batch,
given every purchase of this kind by the account. Released are whole numbers; all else is a function of these and of
public numbers. So answers shrink towards no gap as far as the release leaves them open, and an answer near no gap from
a small epsilon is no evidence of fairness.

Where gaps within cells may be larger than it costs to measure them, one weighted sum of a stratum is also bought, for a
part of epsilon (`fairwall.laws.choice.cell_partition`).

**Facts.** Each purchase stores each person's cell and the noisy counts, and where sums are measured, each person's
weight and the noisy sums. A later batch at no larger epsilon than one of them is answered free from all of them,
whatever its models; a batch at a larger epsilon buys its own cells, and is answered from all together: noise is
independent, and the posterior weighs each by its information. Repeats of a partition count once, with the mean of their
noisy counts.

**Searches.** Where models are candidates (`fairwall.laws.studies.alternatives`), epsilon is spent in three rounds, a
third each: the first buys cells for all of them, and each later one for fewer, those useful enough with the least
expected disparity given the release so far. Each round is epsilon / 3-private given those before, and so all of them
are epsilon-private. All candidates are answered from all rounds; the final ones are known best, as cells serve few
models better than many. With 100 classifiers of 3,000 people at epsilon 1, by sex, the chosen one was within 0.01 of
the best in 91 of 100 draws; after one round in 78%. With rounds for twelve and five it was in 92, and its interval 1.7
times as wide (`benchmarks/alternatives.py`).

**Intervals** are those of `compliance.mechanisms.posterior_answers`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from compliance.intervals.interval import Ends
from compliance.mechanisms.mechanism import BatchQuestion, Facts, Guarantee, Joint, MechanismAnswer, around, exactly
from compliance.mechanisms.posterior_answers import StratumKnowledge, answers
from compliance.mechanisms.row_defaults import ByRecord, require_answerable
from compliance.noise.sampling import Noise, step_for
from fairwall.arrays import Floats
from fairwall.laws.choice.cell_partition import STEPS
from fairwall.laws.choice.cell_purchases import (
    EPSILON,
    CellPurchase,
    disadvantaged_among,
    excess,
    fact_names,
    merged,
    plan,
    planned,
    purchases,
    seen_by,
    strongest,
    within_reach,
)
from fairwall.laws.choice.choose import in_rounds
from fairwall.laws.choice.public_batch import Stratum
from fairwall.laws.privacy.exposure import NO_LIMIT, Limit
from fairwall.laws.studies.alternatives import DRAWS, SearchPosterior

_SEED = 2053
"""Seed of the gaps drawn between rounds."""


@dataclass(frozen=True)
class CellsMechanism(ByRecord):
    """A mechanism of discrete Laplace noise on the number of disadvantaged people per cell, with posterior answers.

    `anew`: whether each batch buys its own cells, whatever was bought before: answers combine all purchases.
    """

    anew: bool = False
    name: str = "cells"
    title: str = "noisy counts of cells"
    guarantee: Guarantee = "pure"
    limit: Limit = NO_LIMIT

    def is_free(self, facts: Facts, epsilon: float, question: BatchQuestion | None = None) -> bool:
        """Return whether the account has bought cells at this epsilon or a larger one."""
        return not self.anew and EPSILON in facts and bool(np.max(facts[EPSILON]) >= epsilon)

    def release(
        self, question: BatchQuestion, facts: Facts, epsilon: float, delta: float, noise: Noise
    ) -> MechanismAnswer:
        """Return the posterior's answers, and the noisy counts as facts. See `Mechanism.release`."""
        require_answerable(self, question.metric, epsilon, delta)
        bought: dict[str, Floats] = {}
        if not self.is_free(facts, epsilon):
            if math.isinf(epsilon):
                return exactly(question.gaps())
            bought = _search(question, facts, epsilon, noise, self.limit)
        values, likely, joint = _answer(question, list(purchases({**facts, **bought})))
        # Nothing is hidden in the last bits, since nothing but released numbers went in; but a grid is promised.
        values = noise.laplace(values, 0.0, step_for(0.0))
        return MechanismAnswer(values, bought, likely=around(values, likely), joint=joint)


def _search(question: BatchQuestion, facts: Facts, epsilon: float, noise: Noise, limit: Limit) -> dict[str, Floats]:
    """Buy cells; for candidates in rounds of fewer models each, unless a limit on the batch forbids rounds."""
    candidates, bought = question.candidates, dict[str, Floats]()
    left, part = ([], epsilon) if candidates is None else in_rounds(question.queries, epsilon, limit)
    # A sum besides is of what candidates have in common, and tells none from another.
    among, besides = question, not left
    for count in (*left, 0):
        bought |= _buy(among, {**facts, **bought}, part, noise, limit, besides)
        if candidates is not None and count:
            _, _, joint = _answer(question, list(purchases({**facts, **bought})))
            found = SearchPosterior(question.metric, candidates, joint(DRAWS, np.random.default_rng(_SEED)))
            among = replace(
                question, predictions=question.predictions[np.sort(found.shortlist(count))], candidates=None
            )
    return bought


def _buy(
    question: BatchQuestion, facts: Facts, epsilon: float, noise: Noise, limit: Limit, besides: bool
) -> dict[str, Floats]:
    asked = question.asked, epsilon, limit, besides
    strata, buys = plan(*asked), planned(*asked)
    total = len(buys.counts)
    exact = question.records.disadvantaged_in(buys.cell_of, total)
    of_strata = np.split(exact, np.cumsum([each.count for each in strata])[:-1])
    counts = [noise.laplace(of, each.scale, 1.0) for of, each in zip(of_strata, strata, strict=True)]
    scales = [STEPS * each.residual.scale for each in strata if each.residual is not None]
    exact = question.records.disadvantaged_sums(buys.weights)
    sums = [noise.laplace(of, scale, 1.0) / STEPS for of, scale in zip(exact[:, np.newaxis], scales, strict=True)]
    before = facts.get(EPSILON, np.empty(0))
    # As short as so many cells allow: it is kept for each person, for good.
    contents = [
        buys.cell_of.astype(np.min_scalar_type(total - 1)),
        np.stack([np.concatenate(counts), buys.variances], axis=1),
    ]
    if sums:
        # Nobody is in two strata: one weight for each person will do.
        inside = [buys.cell_of[row != 0] for row in buys.weights]
        ends = [[float(end(cells)) for cells in inside] for end in (np.min, np.max)]
        contents.append(buys.weights.sum(axis=0, dtype=np.int8))
        contents.append(np.stack([np.concatenate(sums), buys.sum_variances, *ends], axis=1))
    names = fact_names(len(before))[: len(contents)]
    return {**dict(zip(names, contents, strict=True)), EPSILON: np.append(before, epsilon)}


def _answer(question: BatchQuestion, purchased: Sequence[CellPurchase]) -> tuple[Floats, Ends, Joint]:
    purchased = [one.narrowed() for one in strongest(purchased)]
    rows = within_reach(merged(purchased))

    def look(stratum: Stratum) -> StratumKnowledge:
        seen = seen_by(rows, stratum)
        return StratumKnowledge(*disadvantaged_among(purchased, stratum.members), seen, excess(rows))

    return answers(question, look)
