"""Answers to [LD]'s three questions from figures by cell and seed, of a run or published.

A metric's **merit** in a cell is larger where the model is better. For a utility it is the utility. For a fairness
metric it is minus the distance of the cell's mean from its perfect value, 1 for DI and 0 for the others; a seed's
figure counts with the sign of the mean's distance, so that figures which only scatter more are no less fair.

* RQ1, effect of a release: every cell's merit less that of NonDP.
* RQ2, effect of k-based: its merit less that of another split, same protocol and epsilon.
* RQ3, best protocol: for each split and epsilon, protocols are ranked by the merit of each metric, 1 being best and
    ties sharing. A protocol's rank for fairness, or utility, is the mean over those four metrics, splits and epsilons;
    its trade-off is the mean of both. Also Spearman's correlation of the share of inconsistent profiles with these
    ranks among protocols, averaged over splits and epsilons.

Everything is computed per seed, in the seeds that all cells concerned have, and averaged over seeds; figures of one
seed share a split of the table, so standard errors are over seeds. A difference is **clear** if it exceeds the 97.5%
quantile of Student's t with n - 1 degrees of freedom times its standard error; with only one seed, nothing is.

[LD]: Arcolezi, Makhlouf, Palamidessi, DBSec 2023, section 5.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from fairwall.arrays import Floats
from fairwall.laws.local import CLEAN
from sim.games.release.scenario import CONTROLS, DROPPED
from sim.games.release.seeds import Figures, ReleaseCell
from sim.report.estimates import t_interval

FAIRNESS = {"sp": 0.0, "di": 1.0, "eo": 0.0, "oad": 0.0}
"""The fairness metrics, and their perfect values."""

UTILITY = ("acc", "f1", "auc_hard", "recall")
"""[LD]'s utilities. Runs also have the AUC of scores, `auc`."""

K_BASED, UNIFORM = "k-based", "uniform"

_ROUNDING = 1e-12
_LEVEL = 0.05

_Numbers = Floats


@dataclass(frozen=True)
class OverSeeds:
    """A mean over seeds, and its standard error; None with one seed, where nothing is clear."""

    mean: float
    error: float | None
    seeds: int

    @classmethod
    def of(cls, values: _Numbers) -> OverSeeds:
        """Return the mean of one number per seed."""
        seeds = len(values)
        error = float(values.std(ddof=1)) / math.sqrt(seeds) if seeds > 1 else None
        return OverSeeds(float(values.mean()), error, seeds)

    @property
    def ends(self) -> tuple[float, float]:
        """The interval within which the mean clearly lies."""
        if self.error is None:
            return -math.inf, math.inf
        return t_interval(self.mean, self.error, self.seeds - 1, _LEVEL)

    @property
    def sign(self) -> int:
        """1 or -1 where the mean is clearly above or below 0, else 0."""
        low, high = self.ends
        if low <= 0 <= high or abs(self.mean) <= _ROUNDING:
            return 0
        return 1 if self.mean > 0 else -1


@dataclass(frozen=True)
class Effect(OverSeeds):
    """The effect of a change on a metric's merit, averaged over cells; positive is better.

    `worst` is the smallest mean of any cell; `better` counts the cells, of `cells`, with a mean above 0,
    `clearly_better` and `clearly_worse` those with a clear one.
    """

    worst: float
    cells: int
    better: int
    clearly_better: int
    clearly_worse: int


Effects: TypeAlias = Mapping[str, Effect]
"""The effect of a change on each metric."""


@dataclass(frozen=True)
class ProtocolRank:
    """A protocol's mean ranks by kind, 1 being best, and the protocols with a clearly better trade-off."""

    protocol: str
    ranks: Mapping[str, float]
    ahead: frozenset[str]
    seeds: int


@dataclass(frozen=True)
class ReleaseFindings:
    """The answers for one data set.

    Attributes
    ----------
    released : RQ1, every cell with a protocol against NonDP. Empty where there is no seed in common.
    dropped : the same for models without the sensitive columns.
    split : RQ2, k-based against each other split.
    standings : RQ3, best trade-off first.
    inconsistency : correlation of the share of inconsistent profiles with each kind of rank; empty where unknown.
    """

    data: str
    released: Effects
    dropped: Effects
    split: Mapping[str, Effects]
    standings: tuple[ProtocolRank, ...]
    inconsistency: Mapping[str, OverSeeds]


def answers(figures: Figures) -> tuple[ReleaseFindings, ...]:
    """Return the answers for each data set, in the order of the figures."""
    return tuple(_of_data(figures, data) for data in dict.fromkeys(cell.data for cell in figures))


def _of_data(figures: Figures, data: str) -> ReleaseFindings:
    cells = [cell for cell in figures if cell.data == data and cell.protocol not in CONTROLS]
    clean, dropped = (ReleaseCell(data, control, "", math.inf) for control in (CLEAN, DROPPED))
    others = dict.fromkeys(cell.split for cell in cells if cell.split != K_BASED)
    return ReleaseFindings(
        data,
        _effects(figures, [(cell, clean) for cell in cells]),
        _effects(figures, [(dropped, clean)]),
        {other: found for other in others if (found := _effects(figures, _pairs(cells, other)))},
        *_standings(figures, cells),
    )


def _pairs(cells: Sequence[ReleaseCell], other: str) -> list[tuple[ReleaseCell, ReleaseCell]]:
    pairs = [(cell, cell._replace(split=other)) for cell in cells if cell.split == K_BASED]
    return [(one, of_other) for one, of_other in pairs if of_other in cells]


def _effects(figures: Figures, pairs: Sequence[tuple[ReleaseCell, ReleaseCell]]) -> Effects:
    """Return the effect on each metric of replacing the second cell of a pair with the first."""
    found = {}
    for metric in (*FAIRNESS, *UTILITY, "auc"):
        seeds = _seeds(figures, [cell for pair in pairs for cell in pair], (metric,))
        if seeds:
            one, other = (_merits(figures, side, metric, seeds) for side in zip(*pairs, strict=True))
            found[metric] = _effect(one - other)
    return found


def _effect(differences: _Numbers) -> Effect:
    means = differences.mean(1)
    signs = [OverSeeds.of(row).sign for row in differences]
    return Effect(
        **vars(OverSeeds.of(differences.mean(0))),
        worst=float(means.min()),
        cells=len(means),
        better=int((means > _ROUNDING).sum()),
        clearly_better=signs.count(1),
        clearly_worse=signs.count(-1),
    )


def _standings(figures: Figures, cells: Sequence[ReleaseCell]) -> tuple[tuple[ProtocolRank, ...], dict[str, OverSeeds]]:
    """Rank the protocols, over the splits and epsilons that all of them have."""
    from scipy.stats import rankdata

    protocols = list(dict.fromkeys(cell.protocol for cell in cells))
    places = {cell._replace(protocol=""): None for cell in cells}
    rows = [[place._replace(protocol=protocol) for protocol in protocols] for place in places]
    flat = [cell for row in rows if all(cell in figures for cell in row) for cell in row]
    seeds = _seeds(figures, flat, (*FAIRNESS, *UTILITY))
    if len(protocols) < 2 or not seeds:
        return (), {}
    shape = (-1, len(protocols), len(seeds))

    def ranks(metrics: Sequence[str]) -> _Numbers:
        """Return mean ranks of (place, protocol, seed)."""
        merits = [_merits(figures, flat, metric, seeds).reshape(shape).round(12) for metric in metrics]
        return np.array([rankdata(-merit, axis=1) for merit in merits]).mean(0)  # type: ignore[no-any-return]

    kinds = {"fairness": ranks(tuple(FAIRNESS)), "utility": ranks(UTILITY)}
    kinds["trade-off"] = (kinds["fairness"] + kinds["utility"]) / 2
    of_seed = {kind: dict(zip(protocols, found.mean(0), strict=True)) for kind, found in kinds.items()}
    traded = of_seed["trade-off"]
    standings = [
        ProtocolRank(
            protocol,
            {kind: float(found[protocol].mean()) for kind, found in of_seed.items()},
            frozenset(other for other in protocols if OverSeeds.of(traded[protocol] - traded[other]).sign > 0),
            len(seeds),
        )
        for protocol in protocols
    ]
    correlations = {}
    if _seeds(figures, flat, (*FAIRNESS, *UTILITY, "consistent")) == seeds:
        shares = 1 - _values(figures, flat, "consistent", seeds).reshape(shape)
        correlations = {kind: each for kind, found in kinds.items() if (each := _correlation(shares, found))}
    return tuple(sorted(standings, key=lambda standing: standing.ranks["trade-off"])), correlations


def _correlation(shares: _Numbers, ranks: _Numbers) -> OverSeeds | None:
    """Return the correlation over protocols of shares and ranks of (place, protocol, seed), where both vary."""
    from scipy.stats import rankdata

    one, other = (rankdata(each.round(12), axis=1) for each in (shares, ranks))
    one, other = (each - each.mean(1, keepdims=True) for each in (one, other))
    scale = np.sqrt((one**2).sum(1) * (other**2).sum(1))
    vary = (scale > 0).all(1)
    if not vary.any():
        return None
    return OverSeeds.of(((one * other).sum(1)[vary] / scale[vary]).mean(0))


def _seeds(figures: Figures, cells: Sequence[ReleaseCell], metrics: Sequence[str]) -> list[int]:
    if not cells or any(cell not in figures for cell in cells):
        return []
    having = (
        {seed for seed, told in figures[cell].items() if all(metric in told for metric in metrics)} for cell in cells
    )
    return sorted(set.intersection(*having))


def _merits(figures: Figures, cells: Sequence[ReleaseCell], metric: str, seeds: Sequence[int]) -> _Numbers:
    values = _values(figures, cells, metric, seeds)
    if metric not in FAIRNESS:
        return values
    away = values - FAIRNESS[metric]
    return -away * np.where(away.mean(1, keepdims=True) < 0, -1.0, 1.0)


def _values(figures: Figures, cells: Sequence[ReleaseCell], metric: str, seeds: Sequence[int]) -> _Numbers:
    return np.array([[figures[cell][seed][metric] for seed in seeds] for cell in cells], dtype=np.float64)
