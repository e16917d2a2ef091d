"""The most exposed people: an attack's success on those about whom it is surest.

`fairwall.laws.privacy.exposure` has the average over everybody. A small average may be large for a few: so an attack is
measured by its true positive rate at a false positive rate of 10^-3, the share of the disadvantaged whom it names when
it may be wrong about one in 1,000 of the others (as DeSIA, arXiv 2504.18497).

**The guarantee** is for an attacker who knows how large both groups are. The person is named with probability t if
disadvantaged and f if not. Possible data sets of both kinds pair up as swaps, two flips apart
(`fairwall.laws.privacy.exposure`), so that with d = (1 + e^epsilon) delta, for an answer and its complement,

    t <= e^(2 epsilon) f + d,    1 - f <= e^(2 epsilon) (1 - t) + d.

The odds that the person is disadvantaged grow by the likelihood ratio of the observation, at most e^(2 epsilon)
where delta is 0. Against an attacker who knows everybody else's group, but not both sizes, half of that epsilon holds.

**One person, aimed at.** The attacker of `aimed` knows the sizes of both groups, the distribution of the noise and
nothing of anybody else, and spends a whole batch on one model that accepts the person alone. Then the number of people
to which noise is added is 1 or 0. Cells hold at least `least_people`: there the person is one among them. By Neyman and
Pearson's lemma the best test is by the likelihood ratio, the exact posterior at even odds.

**Results of attacks** are stored as counts of people by the attack's log-odds, at even prior odds, in steps of `STEP`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairwall.arrays import Bytes, Floats
from fairwall.laws.choice.cell_partition import least_people
from fairwall.laws.mechanisms.table import MECHANISM_LAWS, NoiseInputs
from fairwall.laws.metrics.group_size_range import DEFAULT_SHARES, Shares
from fairwall.laws.metrics.metric import find_metric
from fairwall.laws.privacy.exposure import is_known, odds, of_a_swap
from fairwall.laws.privacy.single_person_tests import (
    SinglePersonTest,
    look_at_cells,
    look_at_response,
    look_at_rows,
    scaled,
)

FALSE = 1e-3
"""False positive rate: the share of the advantaged who may be named wrongly."""

STEP, MOST = 0.25, 10.0
"""Step of stored log-odds; `MOST` is their largest absolute value."""

_ODDS = np.arange(-MOST, MOST + STEP, STEP)
_FEWEST = 5


def limit(epsilon: float, delta: float = 0.0, false: float = FALSE) -> float:
    """Return the largest true positive rate of an attacker who knows both sizes, at a false positive rate `false`."""
    if math.isinf(epsilon):
        return 1.0
    factor, (_, delta) = odds(epsilon), of_a_swap(epsilon, delta)
    return min(1.0, factor * false + delta, 1 - (1 - delta - false) / factor)


def named(disadvantaged: Floats, advantaged: Floats, false: float = FALSE) -> float:
    """Return the true positive rate at a false positive rate.

    `disadvantaged` and `advantaged` have each group's counts or probabilities, shape (k,), by the attack's certainty
    that people are disadvantaged, the surest first. The bin at which the limit falls is named in part.
    """
    ones, zeros = np.cumsum(disadvantaged) / disadvantaged.sum(), np.cumsum(advantaged) / advantaged.sum()
    # Cumulated shares may miss 1 by their last bits.
    whole = int(np.searchsorted(zeros[:-1], false, side="right"))
    ones, zeros = np.append(0.0, ones), np.append(0.0, zeros)
    step = zeros[whole + 1] - zeros[whole]
    part = min(1.0, (false - zeros[whole]) / step) if step > 0 else 1.0
    return float(ones[whole] + part * (ones[whole + 1] - ones[whole]))


def named_by_look(look: SinglePersonTest, false: float = FALSE) -> float:
    """Return the true positive rate of the best test by one look at a person, at a false positive rate."""
    order = np.argsort(look.zero / np.maximum(look.one, 1e-300), kind="stable")
    return named(look.one[order], look.zero[order], false)


def aimed(
    mechanism: str,
    metric: str,
    n: int,
    epsilon: float,
    delta: float = 0.0,
    shares: Shares = DEFAULT_SHARES,
    false: float = FALSE,
) -> float:
    """Return the true positive rate of an attack that aims a whole batch at one person.

    `false` is the false positive rate, in [0, 1]. Nothing protected is looked at. ValueError for a mechanism that is
    not `fairwall.laws.privacy.exposure.is_known`.

    `n`: people whom the metric looks at, at least 2, taken to be as many in each of its strata. `shares`: the range of
    group sizes: the worse end counts.
    """
    if not is_known(mechanism):
        raise ValueError(f"nothing is known of what mechanism {mechanism} reveals")
    most, law = limit(epsilon, delta, false), MECHANISM_LAWS[mechanism]
    if math.isinf(epsilon):
        return most
    asked = find_metric(metric)
    n = max(2, n // len(asked.strata))
    proxy = metric if len(asked.parts) == 1 else "abs_sp"

    def look(n0: int) -> SinglePersonTest:
        if law.noise_on == "attributes":
            return look_at_response(n, n0, epsilon)
        if law.noise_on == "cells":
            return look_at_cells(n, n0, max(2, n // least_people(epsilon)), epsilon)
        noise = law.error(NoiseInputs(proxy, n0, n - n0, 1, epsilon, delta, shares=shares))
        assert noise is not None, "those that are known add noise"
        return look_at_rows(scaled(noise, n0 * (n - n0) / n), n, n0, 1, ones=1)

    return min(most, max(named_by_look(look(n0), false) for n0 in shares.allowed(n)))


@dataclass(frozen=True, eq=False)
class Sure:
    """An attack's certainty about people.

    `disadvantaged` and `advantaged` have the number of people of each group, shape (k,), by certainty that they are
    disadvantaged, from the least to the most certain.
    """

    disadvantaged: NDArray[np.int_]
    advantaged: NDArray[np.int_]

    @classmethod
    def of(cls, probabilities: Floats, protected: Bytes) -> Sure:
        """Return the counts of people, (n,), by probability at even odds of being disadvantaged; 1 = advantaged."""
        inside = np.clip(probabilities, 1e-12, 1 - 1e-12)
        odds = np.clip(np.log(inside / (1 - inside)), -MOST, MOST)
        places = np.rint((odds + MOST) / STEP).astype(np.intp)
        zero, one = (np.bincount(places[protected == group], minlength=len(_ODDS)) for group in (0, 1))
        return cls(zero, one)

    @classmethod
    def together(cls, parts: Iterable[Sure]) -> Sure:
        """Return the sum of several counts."""
        every = list(parts)
        return cls(*(np.sum([getattr(one, group) for one in every], 0) for group in ("disadvantaged", "advantaged")))

    @property
    def named(self) -> float | None:
        """True positive rate at 1/1,000 false positives; None for under 1,000 advantaged or no disadvantaged."""
        if not self.disadvantaged.sum() or self.advantaged.sum() < 1 / FALSE:
            return None
        return named(self.disadvantaged[::-1].astype(float), self.advantaged[::-1].astype(float))

    def surest(self, people: int = 100) -> tuple[float, float]:
        """Return the least factor by which an attack moved the odds of the most exposed people, and its accuracy.

        The `people` most exposed are those whose odds moved most, either way; of a bin of equal odds a part is taken.
        The accuracy is a share of them, with each group counting equally.
        """
        weights = [1 / max(of.sum(), 1) for of in (self.disadvantaged, self.advantaged)]
        zeros, ones = self.disadvantaged * weights[0], self.advantaged * weights[1]
        # People taken for advantaged are pooled with those taken for disadvantaged as surely.
        half = len(_ODDS) // 2
        there = (self.disadvantaged + self.advantaged)[:half] + (self.disadvantaged + self.advantaged)[: -half - 1 : -1]
        taken = np.clip((people - (np.cumsum(there) - there)) / np.maximum(there, 1), 0.0, 1.0) * (there > 0)
        right, wrong = taken @ (ones[:half] + zeros[: -half - 1 : -1]), taken @ (zeros[:half] + ones[: -half - 1 : -1])
        if not right + wrong:
            return 1.0, 0.5
        return math.exp(-_ODDS[np.flatnonzero(taken)[-1]]), float(right / (right + wrong))

    def curve(self) -> list[tuple[float, float, float]]:
        """Return points of (claimed probability, observed frequency, standard error of the latter's log-odds).

        Both are probabilities of being disadvantaged at even odds: each group counts equally. One point for each unit
        of log-odds with at least five people of each group.
        """
        found, wide = [], round(1 / STEP)
        for start in range(0, len(_ODDS), wide):
            part = slice(start, start + wide)
            zeros, ones = self.disadvantaged[part], self.advantaged[part]
            zero, one = int(zeros.sum()), int(ones.sum())
            if min(zero, one) >= _FEWEST:
                odds = zero / self.disadvantaged.sum() / (one / self.advantaged.sum())
                said = float((zeros + ones) @ _ODDS[part]) / (zero + one)
                error = math.sqrt(1 / zero + 1 / one)
                found.append((1 / (1 + math.exp(-said)), float(odds / (1 + odds)), error))
        return found
