"""Shadow models: what the adversary trains itself, on its own rows, with bits that it knows.

The adversary first sets its probes aside: a model answers otherwise about rows that it was trained on, and a victim
was trained on none of the adversary's. On the rest it trains shadows of both bits with a defence that it supposes the
developer to use: ``none``, or, where it adapts, the declared one (Kerckhoffs: the algorithm and its settings are
public, the rows and the seeds are not).

Victims differ by their rows too, not by seeds alone. Where the settings draw every model's rows, shadows differ
likewise; where a victim is trained on all the rows there are, the adversary has one table only, and may let every few
shadows do with a share of it. That is no gain by itself: a network trained on fewer rows is surer of its answers. On
Adult (two splits, 40 victims) the divergence attack was right about 35 with shadows trained on all rows, about 24 with
a share of 0.6. Drawing with replacement does no better (one split: 16 of 20, and 20 of 20 with all rows).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adversary.attacks.attack import Evidence
from fairwall.learning import Ensemble, together
from fairwall.learning.defences import Defence, Settings, Split

# Shadows trained on one draw: enough to share a matrix product.
TOGETHER = 8


@dataclass(frozen=True, eq=False)
class Probes:
    """Rows to ask about, of both groups alike, and the rows that are left to train on.

    Attributes
    ----------
    features : (probes, d).
    labels : (probes,), 0 or 1.
    group : (probes,), 1 = advantaged.
    rest : the other rows.
    """

    features: NDArray[np.float64]
    labels: NDArray[np.uint8]
    group: NDArray[np.uint8]
    rest: Split


@dataclass(frozen=True, eq=False)
class Shadows:
    """Shadow models and the bits they were trained on.

    Attributes
    ----------
    models : S models.
    bits : (S,), 0 or 1.
    seed : what their rows and seeds were drawn by.
    """

    models: Ensemble
    bits: NDArray[np.uint8]
    seed: int

    def evidence(self, probes: Probes) -> Evidence:
        """Ask all of them about the probes."""
        scores = self.models.scores(probes.features)
        return Evidence(probes.labels, probes.group, self.bits, scores, self.seed)


def set_aside(own: Split, budget: int, seed: int) -> Probes:
    """Draw the probes: half of the budget from each group, the disadvantaged first.

    Parameters
    ----------
    own : the adversary's rows.
    budget : at most so many probes, at least 2. No group gives more than half of its rows, and both give equally many.
    seed : at least 0.
    """
    group = own.groups[0]
    each = min(budget // 2, *(int((group == a).sum()) // 2 for a in (0, 1)))
    if each < 1:
        raise ValueError("probes need a budget of at least 2, and at least 2 rows of each group")
    rng = np.random.default_rng([seed, 0])
    chosen = np.concatenate([rng.choice(np.flatnonzero(group == a), each, replace=False) for a in (0, 1)])
    rest = np.setdiff1d(np.arange(len(group)), chosen)
    return Probes(own.features[chosen], own.labels[chosen], group[chosen], own.take(rest))


def train_shadows(
    rows: Split,
    count: int,
    seed: int,
    defence: Defence,
    settings: Settings,
    *,
    share: float = 1.0,
) -> Shadows:
    """Train shadow models, half of them of each bit, with what the developer is supposed to train with.

    Parameters
    ----------
    rows : the adversary's, less the probes.
    count : how many, at least 2.
    seed : at least 0.
    share : in (0, 1]: of the rows of each group, as many as every few shadows get, drawn without replacement. With 1
        all train on the same rows, of which ``settings.rows`` may still draw each some.
    """
    if count < 2 or not 0 < share <= 1:
        raise ValueError("attacks that train need a shadow model of each bit, and a share of the rows in (0, 1]")
    bits = np.arange(count, dtype=np.uint8) % 2
    rng = np.random.default_rng([seed, 1])
    seeds = rng.integers(2**62, size=count).tolist()
    step = TOGETHER if share < 1 else count
    models: list[Ensemble] = []
    for first in range(0, count, step):
        chosen = slice(first, min(first + step, count))
        drawn = _drawn(rows, share, rng) if share < 1 else rows
        models.append(defence(drawn, bits[chosen], seeds[chosen], settings))
    return Shadows(together(models), bits, seed)


def _drawn(split: Split, share: float, rng: np.random.Generator) -> Split:
    """Draw a share of each group's rows, at least one."""
    members = [np.flatnonzero(split.groups[0] == a) for a in (0, 1)]
    rows = [rng.choice(member, max(round(share * len(member)), 1), replace=False) for member in members]
    return split.take(np.concatenate(rows))
