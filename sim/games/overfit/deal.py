"""Deals of the overfit game: the audited rows, and the rows of the population that the referee holds back.

The table is split once, by its size alone, so that all trials share both models. The audited model is trained on the
training part, and a public predictor of A on some people of that part whose A is known. Audited rows and the population
are disjoint draws from the rest, the pool.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from developer.overfit import hints
from developer.reveal.logistic_models import fit
from fairwall.arrays import Bytes, Floats
from fairwall.tables.people import LeftOut
from sim.games.cards import WRITTEN_DOWN, ComplianceCards, DealError, party_seed
from sim.games.overfit.scenario import OverfitScenario
from sim.games.people import DRAWS_MAX, drawn, load
from sim.scenarios.sweep import Cell


@dataclass(frozen=True, eq=False)
class Pool:
    """The rows of the table that are not trained on; arrays have shape (rows,) unless another is given.

    Attributes
    ----------
    features : (rows, d).
    decisions : the audited model's, 1 = accepted.
    seen : number shared by the rows that look the same to a developer who sees X and decisions.
    told : number shared by the rows with the same decision.
    alike : number shared by the rows with the same X.
    weights : (d + 1,), the public predictor's.
    share : disadvantaged share of the training part.
    """

    features: Floats
    labels: Bytes
    protected: Bytes
    decisions: Bytes
    seen: NDArray[np.intp]
    told: NDArray[np.intp]
    alike: NDArray[np.intp]
    weights: Floats
    share: float
    left_out: tuple[LeftOut, ...]


@dataclass(frozen=True, eq=False)
class OverfitDeal:
    """One trial's cards.

    Attributes
    ----------
    asked : row numbers of the pool that answers are about, (rows,), or (rounds, rows) where each round has its own.
    audited : row numbers of the verdict, the same as `asked` unless rows are fresh.
    population : row numbers held back by the referee.
    seed, referee : seeds of the developer and of the referee's own draws.
    """

    deal_id: str
    scenario: OverfitScenario
    compliance: ComplianceCards
    pool: Pool = field(repr=False)
    asked: NDArray[np.intp]
    audited: NDArray[np.intp]
    population: NDArray[np.intp]
    seed: bytes = field(repr=False)
    referee: bytes = field(repr=False)

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """The table's rows that are in no deal, counted by reason."""
        return self.pool.left_out

    @property
    def cells(self) -> NDArray[np.intp]:
        """Number shared by the pool's rows that look the same to the developer before its requests: (rows,)."""
        return self.pool.seen if self.scenario.overfit.rows in ("open", "fresh") else self.pool.told


def deal(cell: Cell[OverfitScenario], trial: int, deal_id: str, secret: bytes = WRITTEN_DOWN) -> OverfitDeal:
    """Draw the cards of one trial, see `Game`."""
    scenario, data, asked = cell.scenario, cell.scenario.data, cell.scenario.overfit
    seed = scenario.scenario.seed + trial
    rng = np.random.default_rng([*party_seed(secret, seed, "referee")])
    pool = _load(data.source, tuple(data.roles.items()), data.drop, data.train_share, asked.public_sample)
    rows, samples = len(pool.labels), asked.rounds + 1 if asked.rows == "fresh" else 1
    if samples * data.test_size >= rows:
        raise DealError(
            f"data.test_size: {samples} times {data.test_size} rows and a population wanted, {data.source} has {rows} "
            "that are not trained on"
        )

    def split(order: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        audited = order[: samples * data.test_size].reshape(samples, data.test_size)
        return audited, order[samples * data.test_size :][: asked.population]

    chosen, population = drawn(
        lambda: split(rng.permutation(rows)),
        lambda parts: all(0 < pool.protected[part].mean() < 1 for part in (*parts[0], parts[1])),
        f"data.test_size: one group was empty in each of {DRAWS_MAX} draws; draw more",
    )
    shown = chosen[:-1] if samples > 2 else chosen[0]
    return OverfitDeal(
        deal_id=deal_id,
        scenario=scenario,
        compliance=ComplianceCards(
            pool.labels[shown],
            pool.protected[shown],
            party_seed(secret, seed, "compliance"),
            pool.features[shown] if scenario.committed else None,
        ),
        pool=pool,
        asked=shown,
        audited=chosen[-1],
        population=population,
        seed=party_seed(secret, seed, "developer"),
        referee=party_seed(secret, seed, "scores"),
    )


@lru_cache(maxsize=4)
def _load(
    source: str, roles: tuple[tuple[str, Any], ...], drop: tuple[str, ...], train_share: float, public: int
) -> Pool:
    table = load(source, drop, roles)
    features, rows = table.features, len(table.labels)
    order = np.random.default_rng(0).permutation(rows)
    trained, rest = np.split(order, [math.floor(train_share * rows)])
    known = trained[:public]
    for what, values in (("group", table.protected[known]), ("label", table.labels[trained])):
        if not 0 < values.sum() < len(values):
            raise DealError(f"data.train_share: everybody trained on in {source} has the same {what}; take more")
    model, predictor = fit(features[trained], table.labels[trained]), fit(features[known], 1 - table.protected[known])
    weights = np.append(predictor.weights, predictor.intercept)
    own, decisions = features[rest], (model.scores(features[rest]) >= 0.5).astype(np.uint8)
    told = decisions.astype(np.intp)
    _, hinted = np.unique(hints(own, weights), return_inverse=True)
    _, alike = np.unique(own, axis=0, return_inverse=True)
    return Pool(
        features=own,
        labels=table.labels[rest],
        protected=table.protected[rest],
        decisions=decisions,
        seen=2 * hinted + told,
        told=told,
        alike=alike.ravel(),
        weights=weights,
        share=float(1 - table.protected[trained].mean()),
        left_out=table.left_out,
    )
