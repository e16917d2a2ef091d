"""Deals of the reveal game: every party's cards for one trial, drawn from the scenario and the trial's seed.

The table is split once into a training part and a test part, by its size alone, so that every trial and every seed of a
scenario shares one base model. A trial draws its test set from the test part.
"""

from __future__ import annotations

import functools
import hashlib
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairwall.arrays import Bytes, Floats
from fairwall.laws.metrics.metric import strata_of
from fairwall.tables.people import LeftOut
from sim.datasets import EncodedRows
from sim.datasets.synthetic import synthetic
from sim.games.cards import WRITTEN_DOWN, ComplianceCards, DealError, party_seed
from sim.games.people import DRAWS_MAX, drawn, load
from sim.games.reveal.scenario import RevealScenario
from sim.scenarios.sweep import Cell

_STRATUM_MIN = 3


@dataclass(frozen=True, eq=False)
class TrainingTable:
    """Rows outside every test set, without their protected attributes: features (rows, d) and labels (rows,)."""

    features: Floats
    labels: Bytes

    @functools.cached_property
    def digest(self) -> str:
        """SHA-256 of the rows, the table's name in a deal."""
        # The arrays are contiguous; a copy of a large table would cost more than its digest.
        digest = hashlib.sha256(self.features.data)
        digest.update(self.labels.data)
        return digest.hexdigest()


@dataclass(frozen=True, eq=False)
class PublicSample:
    """Rows outside the test set whose group is public, the disadvantaged first: features (rows, d), labels (rows,)."""

    features: Floats
    labels: Bytes
    disadvantaged_rows: int


@dataclass(frozen=True, eq=False)
class DeveloperCards:
    """The developer's cards.

    Attributes
    ----------
    features, labels : the test set's, (n, d) and (n,); None where it is hidden.
    scored : whether the one feature is the score of the base model h0.
    disadvantaged : number of disadvantaged people in each of the metric's strata, where that is public; else empty.
    """

    features: Floats | None
    labels: Bytes | None
    scored: bool
    training: TrainingTable | None
    disadvantaged: tuple[int, ...] = ()
    public: PublicSample | None = None
    seed: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, eq=False)
class RevealDeal:
    """One trial's cards. `adversary` is None in a game without an adversary; `left_out` rows are in nobody's cards."""

    deal_id: str
    scenario: RevealScenario
    compliance: ComplianceCards
    developer: DeveloperCards
    adversary: PublicSample | None
    left_out: tuple[LeftOut, ...] = ()


def deal(cell: Cell[RevealScenario], trial: int, deal_id: str, secret: bytes = WRITTEN_DOWN) -> RevealDeal:
    """Draw the cards of one trial, see `Game`."""
    scenario = cell.scenario
    seed = scenario.scenario.seed + trial
    rng = np.random.default_rng(int.from_bytes(party_seed(secret, seed, "referee"), "big"))
    table, training, pool = _split(scenario, rng)
    rows = _draw_valid(table, pool, scenario, rng)
    probes = scenario.adversary.probes if scenario.adversary.attack else 0
    known = scenario.developer.public_sample
    rest = np.setdiff1d(pool, rows) if probes or known else pool
    adversary = _public_sample(table, rest, "adversary.probes", probes, rng) if probes else None
    sample = _public_sample(table, rest, "developer.public_sample", known, rng) if known else None
    features, labels, hidden = table.encoded[rows], table.labels[rows], scenario.data.hidden
    strata = strata_of(scenario.compliance.metric, labels) if "n0" in scenario.developer.knows else []
    return RevealDeal(
        deal_id=deal_id,
        scenario=scenario,
        compliance=ComplianceCards(
            labels, table.protected[rows], party_seed(secret, seed, "compliance"), features if hidden else None
        ),
        developer=DeveloperCards(
            features=None if hidden else features,
            labels=None if hidden else labels,
            scored=table.scored,
            training=training,
            disadvantaged=tuple(int((table.protected[rows][inside] == 0).sum()) for inside in strata),
            public=sample,
            seed=party_seed(secret, seed, "developer"),
        ),
        adversary=adversary,
        left_out=table.left_out,
    )


def _split(
    scenario: RevealScenario, rng: np.random.Generator
) -> tuple[EncodedRows, TrainingTable | None, NDArray[np.intp]]:
    data = scenario.data
    if data.source == "synthetic":
        assert data.n is not None, "checked when the scenario was read"
        assert data.n0 is not None, "checked when the scenario was read"
        assert data.scores is not None, "checked when the scenario was read"
        table = synthetic(data.n, data.n0, data.scores, rng)
        return table, None, np.arange(data.n)
    return _load_split(data.source, tuple(data.roles.items()), data.drop, data.train_share)


@functools.lru_cache(maxsize=4)
def _load_split(
    source: str, roles: tuple[tuple[str, Any], ...], drop: tuple[str, ...], train_share: float
) -> tuple[EncodedRows, TrainingTable | None, NDArray[np.intp]]:
    table = load(source, drop, roles)
    order = np.random.default_rng(0).permutation(len(table.labels))
    training = np.sort(order[: math.floor(train_share * len(order))])
    pool = np.sort(order[len(training) :])
    if not len(training):
        return table, None, pool
    return table, TrainingTable(table.encoded[training], table.labels[training]), pool


def _draw_valid(
    table: EncodedRows, pool: NDArray[np.intp], scenario: RevealScenario, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Draw the test set, again until each of the metric's strata has both groups."""

    def will_do(rows: NDArray[np.intp]) -> bool:
        strata = (table.protected[rows][inside] for inside in strata_of(scenario.compliance.metric, table.labels[rows]))
        return all(len(groups) >= _STRATUM_MIN and 0 < groups.sum() < len(groups) for groups in strata)

    remedy = "draw more, or set data.n0" if scenario.data.n0 is None else "draw more"
    return drawn(
        lambda: _draw(table, pool, scenario, rng),
        will_do,
        f"data.test_size: metric {scenario.compliance.metric} found one group empty in each of {DRAWS_MAX} test sets "
        f"of {scenario.people} people; {remedy}",
    )


def _draw(
    table: EncodedRows, pool: NDArray[np.intp], scenario: RevealScenario, rng: np.random.Generator
) -> NDArray[np.intp]:
    size, n0 = scenario.people, scenario.data.n0
    if size > len(pool):
        raise DealError(
            f"data.test_size: {size} people wanted, the test part of {table.name} has {len(pool)} "
            f"(data.train_share = {scenario.data.train_share:g} of {len(table.labels)} rows is for training)"
        )
    if n0 is None:
        return rng.choice(pool, size, replace=False)
    groups = []
    for group, key, wanted in ((0, "data.n0", n0), (1, "data.test_size", size - n0)):
        members = pool[table.protected[pool] == group]
        if wanted > len(members):
            name = "advantaged" if group else "disadvantaged"
            raise DealError(f"{key}: {wanted} {name} people wanted, the test part of {table.name} has {len(members)}")
        groups.append(rng.choice(members, wanted, replace=False))
    return rng.permutation(np.concatenate(groups))


def _public_sample(
    table: EncodedRows, rest: NDArray[np.intp], key: str, rows: int, rng: np.random.Generator
) -> PublicSample:
    wanted = rows // 2
    groups = []
    for group in (0, 1):
        members = rest[table.protected[rest] == group]
        if wanted > len(members):
            name = "advantaged" if group else "disadvantaged"
            raise DealError(
                f"{key}: {wanted} {name} rows wanted, {len(members)} of {table.name} are left "
                "outside the test set and the training part"
            )
        groups.append(rng.choice(members, wanted, replace=False))
    drawn = np.concatenate(groups)
    return PublicSample(table.encoded[drawn], table.labels[drawn], wanted)
