r"""Who is worst off: what an attack tells of the people about whom it is surest.

`fairwall.laws.exposure` has the average over everybody. An average of little may be much of a few: so an attack is
asked whom it names disadvantaged when it may be wrong about one in 1,000 of the others alone, and what share of the
disadvantaged is among them: its true positive rate at a false positive rate of 10^-3 (as DeSIA, arXiv 2504.18497).

**The guarantee** is for an attacker who knows how large both groups are. The person is named with probability t if
disadvantaged and f if not. Of data sets that may be, one of each kind go together that are a swap, two flips, apart
(`fairwall.laws.exposure`), so that with d = (1 + e^epsilon) delta, for an answer and its complement,

    t <= e^(2 epsilon) f + d,    1 - f <= e^(2 epsilon) (1 - t) + d.

The odds that the person is disadvantaged grow by the ratio of both likelihoods of what is seen, at most e^(2 epsilon)
where delta is 0. Who knows everybody else's group, and not both sizes, has half of that epsilon.

**One person, aimed at.** The attacker of `aimed` knows the sizes of both groups, the law of the noise and nothing of
anybody else, and spends a whole batch on one model that accepts the person alone. Then what noise is on, in people,
is 1 or 0. Cells hold no less than `least_people`: there the person is one among them. By Neyman and Pearson's lemma
nothing names more of the disadvantaged than the ratio of the likelihoods, the exact posterior at even odds, does.

**What was played** is kept as counts of people by the attack's log-odds, at even odds before, in steps of `STEP`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairwall.laws.cells import least_people
from fairwall.laws.exposure import is_known, odds, of_a_swap
from fairwall.laws.looks import Look, look_at_cells, look_at_response, look_at_rows, scaled
from fairwall.laws.mechanisms import MECHANISM_LAWS, Batch
from fairwall.laws.metric import find_metric
from fairwall.laws.shares import DEFAULT_SHARES, Shares

FALSE = 1e-3
"""The share of the advantaged who may be named wrongly."""

STEP, MOST = 0.25, 10.0
"""Log-odds are told apart by so much, up to so much."""

_ODDS = np.arange(-MOST, MOST + STEP, STEP)
_FEWEST = 5


def limit(epsilon: float, delta: float = 0.0, false: float = FALSE) -> float:
    """Return what share of the disadvantaged nobody can exceed who knows both groups' sizes, at a false positive rate.

    A share in [0, 1]; `false` is that of the advantaged who are named, in [0, 1].
    """
    if math.isinf(epsilon):
        return 1.0
    factor, (_, delta) = odds(epsilon), of_a_swap(epsilon, delta)
    return min(1.0, factor * false + delta, 1 - (1 - delta - false) / factor)


def named(disadvantaged: NDArray[np.float64], advantaged: NDArray[np.float64], false: float = FALSE) -> float:
    """Return the share of the disadvantaged who are named, where that share of the advantaged is.

    Parameters
    ----------
    disadvantaged, advantaged : ndarray, shape (k,)
        Of each group how many, or how probable, by how sure an attack is that they are disadvantaged, the surest first.
        Of those between whom the limit falls, as large a part as it allows is named.
    """
    ones, zeros = np.cumsum(disadvantaged) / disadvantaged.sum(), np.cumsum(advantaged) / advantaged.sum()
    # Cumulated shares may miss 1 by their last bits.
    whole = int(np.searchsorted(zeros[:-1], false, side="right"))
    ones, zeros = np.append(0.0, ones), np.append(0.0, zeros)
    step = zeros[whole + 1] - zeros[whole]
    part = min(1.0, (false - zeros[whole]) / step) if step > 0 else 1.0
    return float(ones[whole] + part * (ones[whole + 1] - ones[whole]))


def named_by_look(look: Look, false: float = FALSE) -> float:
    """Return the same of the best test by one look at a person."""
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
    """Return what share of the disadvantaged is named by an attack that aims a whole batch at one person.

    A share `false` of the advantaged, in [0, 1], is named too. Nothing protected is looked at. ValueError for a
    mechanism of which `fairwall.laws.exposure.is_known` says no.

    Parameters
    ----------
    n : people whom the metric looks at, at least 2, taken to be as many in each of its strata.
    shares : how small and how large a group may be: the worse of both counts.
    """
    if not is_known(mechanism):
        raise ValueError(f"nothing is known of what mechanism {mechanism} reveals")
    most, law = limit(epsilon, delta, false), MECHANISM_LAWS[mechanism]
    if math.isinf(epsilon):
        return most
    asked = find_metric(metric)
    n = max(2, n // len(asked.strata))
    proxy = metric if len(asked.parts) == 1 else "abs_sp"

    def look(n0: int) -> Look:
        if law.noise_on == "attributes":
            return look_at_response(n, n0, epsilon)
        if law.noise_on == "cells":
            return look_at_cells(n, n0, max(2, n // least_people(epsilon)), epsilon)
        noise = law.error(Batch(proxy, n0, n - n0, 1, epsilon, delta, shares=shares))
        assert noise is not None, "those that are known add noise"
        return look_at_rows(scaled(noise, n0 * (n - n0) / n), n, n0, 1, ones=1)

    return min(most, max(named_by_look(look(n0), false) for n0 in shares.allowed(n)))


@dataclass(frozen=True, eq=False)
class Sure:
    """How sure an attack was of people.

    Attributes
    ----------
    disadvantaged, advantaged : (k,), how many people of each group, by how sure it was that they are disadvantaged,
        from the least sure to the surest.
    """

    disadvantaged: NDArray[np.int_]
    advantaged: NDArray[np.int_]

    @classmethod
    def of(cls, probabilities: NDArray[np.float64], protected: NDArray[np.uint8]) -> Sure:
        """Count people, (n,), by the probability at even odds that they are disadvantaged; 1 = advantaged."""
        inside = np.clip(probabilities, 1e-12, 1 - 1e-12)
        odds = np.clip(np.log(inside / (1 - inside)), -MOST, MOST)
        places = np.rint((odds + MOST) / STEP).astype(np.intp)
        zero, one = (np.bincount(places[protected == group], minlength=len(_ODDS)) for group in (0, 1))
        return cls(zero, one)

    @classmethod
    def together(cls, each: Iterable[Sure]) -> Sure:
        """Add up what several were."""
        every = list(each)
        return cls(*(np.sum([getattr(one, group) for one in every], 0) for group in ("disadvantaged", "advantaged")))

    @property
    def named(self) -> float | None:
        """What share of the disadvantaged is named where one in 1,000 of the advantaged is; None with fewer of them."""
        if not self.disadvantaged.sum() or self.advantaged.sum() < 1 / FALSE:
            return None
        return named(self.disadvantaged[::-1].astype(float), self.advantaged[::-1].astype(float))

    def surest(self, people: int = 100) -> tuple[float, float]:
        """Return by which factor an attack moved the odds of so many people at least, and how often it is right.

        These are the most exposed: those whose odds it moved most, either way. Of people alike, a part is taken. It is
        right about a share of them, each group counting as much as the other.
        """
        weights = [1 / max(of.sum(), 1) for of in (self.disadvantaged, self.advantaged)]
        zeros, ones = self.disadvantaged * weights[0], self.advantaged * weights[1]
        # Those whom it takes for advantaged, with those whom it takes for disadvantaged as surely.
        half = len(_ODDS) // 2
        there = (self.disadvantaged + self.advantaged)[:half] + (self.disadvantaged + self.advantaged)[: -half - 1 : -1]
        taken = np.clip((people - (np.cumsum(there) - there)) / np.maximum(there, 1), 0.0, 1.0) * (there > 0)
        right, wrong = taken @ (ones[:half] + zeros[: -half - 1 : -1]), taken @ (zeros[:half] + ones[: -half - 1 : -1])
        if not right + wrong:
            return 1.0, 0.5
        return math.exp(-_ODDS[np.flatnonzero(taken)[-1]]), float(right / (right + wrong))

    def curve(self) -> list[tuple[float, float, float]]:
        """Return how sure the attack was, how often it was right about that, and the standard error of its log-odds.

        Both are probabilities of being disadvantaged at even odds: each group counts as much as the other. A point for
        each unit of log-odds with at least five people of each group.
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
