"""Deals of the release game: people to train and to test on, and the sensitive columns, which stay with compliance.

One trial is one split of the table, stratified by the label, as scikit-learn's `train_test_split` draws it. Where the
seed decides everything it is the paper's split of that seed; the learner's seed, and that of sensitive columns which
each trial draws, are the same number.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field

import numpy as np

from compliance.records.people import STRATUM_MIN
from fairwall.arrays import Bytes, Floats
from fairwall.errors import DataError
from fairwall.laws.local import LOCAL_LAWS, LocalPrivacyError, split, uniform_at_k_based
from fairwall.laws.local.budgets import require_epsilon
from fairwall.learning.forest import Boosting
from fairwall.tables.people import LeftOut, Roles
from sim.datasets.coded import CodedTable, load_coded, stratified_split
from sim.datasets.shipped import NamedRoles, own
from sim.games.cards import WRITTEN_DOWN, ComplianceCards, QueryCards, ReleaseCards, SensitiveColumn, party_seed
from sim.games.release.scenario import CONSTANT, CONTROLS, DROPPED, UNIFORM_AT_K_BASED, ReleaseData, ReleaseScenario
from sim.scenarios.sweep import Cell

_SEEDS = 2**32


@dataclass(frozen=True, eq=False)
class ReleaseDeal:
    """One trial's cards.

    `boosting` and `seed` are settings of the developer's trees. `features`, (people to train on, columns that are not
    sensitive), and `labels`, (people,), are the developer's. `compliance` holds the test set and the data to release.
    """

    deal_id: str
    scenario: ReleaseScenario
    features: Floats
    labels: Bytes
    boosting: Boosting
    seed: int
    compliance: ComplianceCards = field(repr=False)
    left_out: tuple[LeftOut, ...] = ()

    @property
    def release(self) -> ReleaseCards:
        """Compliance's data to release."""
        assert self.compliance.release is not None, "this game's"
        return self.compliance.release

    @property
    def releases(self) -> bool:
        """Whether anything is released: not in two of the controls, nor where the whole budget is for queries."""
        return self.release.protocol not in (DROPPED, CONSTANT) and self.release.epsilon > 0


def deal(cell: Cell[ReleaseScenario], trial: int, deal_id: str, secret: bytes = WRITTEN_DOWN) -> ReleaseDeal:
    """Draw the cards of one trial, see `Game`; LocalPrivacyError for an impossible epsilon."""
    scenario = cell.scenario
    seed = scenario.scenario.seed + trial
    number = seed if secret == WRITTEN_DOWN else int.from_bytes(party_seed(secret, seed, "referee")[:4], "big")
    table = _sensitive(_table(scenario.data.source, _roles(scenario.data)), scenario.data, number % _SEEDS)
    hidden = np.array([table.columns.index(name) for name in table.sensitive])
    shown = np.setdiff1d(np.arange(len(table.columns)), hidden)
    domains = [table.sizes[place] for place in hidden]
    epsilon, shares = _budget(scenario, domains, [table.columns[place] for place in hidden].index(table.protected))
    training, test = stratified_split(table.labels, number % _SEEDS, scenario.data.test_share)
    columns = tuple(
        SensitiveColumn(
            table.columns[place], int(place), domain, share, protected=table.columns[place] == table.protected
        )
        for place, domain, share in zip(hidden, domains, shares, strict=True)
    )
    values, asked = table.values, scenario.developer
    protected = values[:, table.columns.index(table.protected)].astype(np.uint8)
    return ReleaseDeal(
        deal_id=deal_id,
        scenario=scenario,
        features=values[np.ix_(training, shown)].astype(np.float64),
        labels=table.labels[training],
        boosting=Boosting(
            asked.depth or table.boosting.depth,
            asked.rate or table.boosting.rate,
            asked.trees or table.boosting.trees,
        ),
        seed=number % _SEEDS,
        compliance=ComplianceCards(
            table.labels[test],
            protected[test],
            party_seed(secret, seed, "compliance"),
            values[np.ix_(test, shown)].astype(np.float64),
            ReleaseCards(
                scenario.release.protocol,
                columns,
                tuple(table.sizes[place] for place in shown),
                epsilon,
                scenario.release.epsilon if scenario.release.queries else epsilon,
                values[np.ix_(training, hidden)].astype(np.uint8),
                values[np.ix_(test, hidden)].astype(np.uint8),
                _queried(scenario, protected[training]),
            ),
        ),
        left_out=table.left_out,
    )


@functools.lru_cache(maxsize=2)
def _table(source: str, roles: Roles | None) -> CodedTable:
    return load_coded(source, roles)


def _sensitive(table: CodedTable, data: ReleaseData, seed: int) -> CodedTable:
    """Choose a trial's sensitive columns. Cells share their trials' seeds, so every cell draws the same ones."""
    if data.sensitive_drawn:
        least, most = data.sensitive_drawn
        return table.drawing(least, most, seed, data.candidates)
    return table.having(data.sensitive) if data.sensitive else table


def _roles(data: ReleaseData) -> Roles | None:
    """Return the roles of the columns of a user's table; None for a known table's own."""
    if not data.drop and not any(data.roles.values()):
        return None
    return own(data.source, NamedRoles(**data.roles, drop=data.drop))


def _queried(scenario: ReleaseScenario, protected: Bytes) -> QueryCards | None:
    release = scenario.release
    if not release.queries:
        return None
    if len(protected) < STRATUM_MIN or protected.min() == protected.max():
        raise DataError(
            f"data.test_share: leaves {len(protected)} people to train on, too few of both groups to ask queries about"
        )
    return QueryCards(release.queries, scenario.compliance.mechanism, release.queried_epsilon)


def _budget(scenario: ReleaseScenario, domains: list[int], protected: int) -> tuple[float, tuple[float, ...]]:
    """Return the epsilon of the release of all sensitive columns, and each column's share of it."""
    release = scenario.release
    epsilon, how = release.released_epsilon, release.weights or release.split
    if release.protocol in CONTROLS:
        return epsilon, split("uniform", domains, 1.0)
    if LOCAL_LAWS[release.protocol].domain is not None and len(domains) > 1:
        raise LocalPrivacyError(
            f"{release.protocol} releases the protected column alone, and {len(domains)} columns are sensitive: set "
            "data.sensitive"
        )
    if how == UNIFORM_AT_K_BASED:
        epsilon, how = epsilon * uniform_at_k_based(domains, protected, 1.0), "uniform"
    shares = split(how, domains, 1.0)
    for share in shares if epsilon else ():  # where all is for queries, nothing is released
        require_epsilon(share * epsilon)
    return epsilon, shares
