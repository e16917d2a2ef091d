"""Estimate the attributes that a single batch reveals to the best known attack, with free choice of predictions.

**The attack.** The attacker knows only N0 and the distributions of all noise. A budget for m answers is spent on
finding out who is disadvantaged, with a guess for everybody. Success is the balanced accuracy, the mean of both groups'
shares guessed right; blind guessing gets 1/2. Where little is told, accuracy grows with the square root of the
information about one person, so the best attack asks about everybody equally: random rows of as many 0s as 1s. Rows
that say much about few, such as weights 1, 2, 4, ... are better only where far more than `reveal_max` is lost anyway.
(`developer/reveal` plays such attacks; tests compare its figures with these.)
`fairwall.laws.privacy.single_person_tests` has what a row, or a cell, tells about one person.

**One person.** A targeted person may be identified far more surely than people are on average. N0 is public, so that
the person's group is distinguished by two mixtures of data sets with the same N0: a person of the other group has
changed places with this one. Such data sets are two flips apart, and what is (epsilon, delta)-private for one flip is
(2 epsilon, (1 + e^epsilon) delta)-private for two, whence

    1/2 + TV/2 <= (e^(2 epsilon) + (1 + e^epsilon) delta) / (1 + e^(2 epsilon)),

which is also the largest probability at even odds. The mixtures pair up likewise for an attacker with independent
knowledge of each of the others: of independent attributes, given how many are 1, one more is 1 where the number is one
larger, and all others are unchanged. Where N0 is not known the data sets are one flip apart; an attacker who knows both
N0 and everybody else knows the person without any answer.

**Mechanisms.** Noise on gaps is N0 N1 / n times as large on X. A batch's cube (`fairwall.laws.noise.linf_ball`) has as
many sides as different coordinates: the attacker takes the best number. Given its size T, its noise is uniform on
-T..T, and what all answers say of T counts too: the ratio of the person's two likelihoods, both means over T, is drawn,
with a fixed seed. Two cubes (`fairwall.laws.choice.low_rank`) are modelled as one at all of epsilon with the sides of
both: tested, not proved. Cells answer later batches free, so that all noisy counts can be found out, however many
models a batch has; they are rows of k = n/C people. With N0 known, so is the sum of all noise but for its own, and
noise has 1 - 1/C of its variance. A sum measured besides (`fairwall.laws.choice.cell_partition`) tells what one more
cell of an eighth of the people does. Tables by group (`fairwall.laws.groups.group_counts`) are cells whose noise is
that of two groups, of a group and everybody else, which hides least; the information of several adds up as for normal
distributions. Rows of one ball (`fairwall.laws.noise.row_noise`) are a cube's, for each part of the people by itself.
Of a given number of cells, equal ones reveal most: with k people in it, a cell gives away k Phi(d/2), which is concave
in k. Randomised response tells each attribute rightly with probability 1/(1 + e^-epsilon): the number of all people it
calls disadvantaged makes a value more or less sure, and never the other value likelier.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

from fairwall.laws.choice.cell_partition import CELL_MIN, least_people
from fairwall.laws.choice.low_rank import RANKS
from fairwall.laws.mechanisms.table import MECHANISM_LAWS, NoiseInputs
from fairwall.laws.metrics.group_size_range import DEFAULT_SHARES, Shares
from fairwall.laws.metrics.metric import find_metric
from fairwall.laws.noise.distributions import Laplace
from fairwall.laws.noise.linf_ball import TOGETHER
from fairwall.laws.noise.row_noise import WholeCube
from fairwall.laws.privacy.single_person_tests import (
    distance,
    found_out,
    look_at_rows,
    of_cells,
    of_noise,
    scaled,
    told_apart,
)

REVEAL_MAX = 0.6
"""Default reveal limit of a policy, as a balanced accuracy."""


@dataclass(frozen=True)
class Limit:
    """The most that a batch may reveal: the best attack's balanced accuracy, 1/2 to 1 (no limit), over `shares`."""

    accuracy: float = 1.0
    shares: Shares = DEFAULT_SHARES


NO_LIMIT = Limit()

_KNOWN = frozenset({"sums", "cube", "directions", "cells", "attributes"})
"""Values of `noise_on` that `revealed` covers, besides independent noise on gaps."""


def is_known(mechanism: str) -> bool:
    """Return whether `revealed` covers a mechanism."""
    law = MECHANISM_LAWS.get(mechanism)
    return law is not None and (law.independent or law.noise_on in _KNOWN)


def revealed(
    mechanism: str,
    metric: str,
    n: int,
    queries: int,
    epsilon: float,
    delta: float = 0.0,
    shares: Shares = DEFAULT_SHARES,
    *,
    different: int | None = None,
) -> float:
    """Return the balanced accuracy of the best attack with a whole batch, at the worst group size of a public range.

    ValueError for a mechanism that is not `is_known`.

    `n`: people whom the metric looks at, at least 2; they are taken to be as many in each of its strata. `epsilon`,
    `delta`: the whole budget of the batch. `different`: the number of different coordinates for a cube; None where the
    attacker still chooses the batch.
    """
    if not is_known(mechanism):
        raise ValueError(f"nothing is known of what mechanism {mechanism} reveals")
    n = max(2, n // len(find_metric(metric).strata))
    sizes = _sizes(n, shares) if MECHANISM_LAWS[mechanism].noise_on == "gaps" else _sizes(n, shares)[:1]
    return max(_revealed(mechanism, metric, n, n0, queries, epsilon, delta, shares, different) for n0 in sizes)


def within(
    names: Sequence[str], metric: str, n: int, queries: int, epsilon: float, delta: float, limit: Limit
) -> list[str]:
    """Return the mechanisms within a limit; if none, the one that reveals least. Arguments as of `revealed`."""
    if limit.accuracy >= one_person(epsilon, delta):
        return list(names)
    told = {name: revealed(name, metric, n, queries, epsilon, delta, limit.shares) for name in names}
    inside = [name for name in names if told[name] <= limit.accuracy]
    return inside or [min(names, key=lambda name: told[name])]


def one_person(epsilon: float, delta: float = 0.0) -> float:
    """Return an upper bound on the probability of guessing a targeted person's group, at even odds.

    Also bounds what a batch reveals on average. Both group sizes count as public.
    """
    twice, delta = of_a_swap(epsilon, delta)
    return min(1.0, 1 / (1 + math.exp(-twice)) + delta / (1 + odds(epsilon)))


def odds(epsilon: float) -> float:
    """Return the largest factor by which a batch without delta changes the odds of one person's group, up to e^700."""
    twice, _ = of_a_swap(epsilon, 0.0)
    return math.exp(min(twice, 700.0))


def of_a_swap(epsilon: float, delta: float) -> tuple[float, float]:
    """Return the epsilon and delta between data sets in which two people have swapped groups."""
    return 2 * epsilon, (1 + math.exp(min(epsilon, 700.0))) * delta


def in_words(accuracy: float, epsilon: float, delta: float = 0.0, fewest: int = 1) -> str:
    """Return a plain sentence on the most a batch reveals where both groups have at least `fewest` people."""
    groups = "however small a group is" if fewest == 1 else f"where both have at least {fewest:,} people"
    return (
        "Whoever spends this whole batch on finding out who is who, by the best attack known here, has a balanced "
        f"accuracy of at most {_percent(accuracy)}, the mean of the shares of both groups that are named right, "
        f"{groups}; guessing gives 50%, and several batches tell more. About one person aimed at, the limit of one "
        f"batch is e^(2 eps)/(1+e^(2 eps)), {_percent(one_person(epsilon, delta))} at epsilon {epsilon:,.10g}."
    )


def least_people_within(epsilon: float, limit: Limit) -> int:
    """Return the least people in a cell under a limit; smaller cells are not covered by what cells reveal."""
    return least_people(epsilon) if limit.accuracy >= one_person(epsilon) else CELL_MIN


@lru_cache(maxsize=256)
def cells_within(n: int, epsilon: float, limit: Limit, *, besides: bool = False) -> int:
    """Return the most cells of a stratum's people that together reveal no more than a limit.

    There are at least 2 people, and epsilon is above 0 and finite. At least 1 is returned: one cell reveals only N0; or
    0 where a sum is measured besides and reveals too much by itself.
    """
    if limit.accuracy >= one_person(epsilon):
        return n

    def fits(cells: int) -> bool:
        return of_cells(n, limit.shares.allowed(n)[0], cells, epsilon, besides=besides) <= limit.accuracy

    most = max(1, n // CELL_MIN)
    # More cells reveal more.
    low, high = 0 if besides else 1, most + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def of_tables(
    n: int, tables: Mapping[int, int], sums: int, epsilon: float, sums_epsilon: float, shares: Shares
) -> float:
    """Return the balanced accuracy of the best attack with counts by group, on membership of a group of the least size.

    `n`: people who are counted, at least 2. `tables`: the number of tables by their number of strata, all with noise of
    its rate. `sums`: how many models' scores are summed by group. `epsilon`, `sums_epsilon`: of each table, and of the
    sums of each model; the noise between two groups, which hides least.
    """

    def told(n: int, n0: int) -> float:
        square = 0.0
        for strata, number in tables.items():
            square += number * distance(of_cells(n, n0, min(strata, n), epsilon)) ** 2
        if sums:
            square += distance(told_apart([look_at_rows(Laplace(0.5 / sums_epsilon), n, n0, sums)])) ** 2
        return NormalDist().cdf(math.sqrt(square) / 2)

    return found_out(told, n, shares.allowed(n)[0])


def of_rows(parts: Sequence[tuple[int, int]], epsilon: float, shares: Shares) -> float:
    """Return the balanced accuracy of the best attack with rows of counts by group, as of `of_tables`.

    `parts` has each disjoint part's people and rows, that of people included; `epsilon` is that of all rows.
    """
    people = sum(n for n, _ in parts)
    least, right = shares.allowed(max(people, 2))[0], 0.0
    for n, rows in parts:
        n0 = min(max(1, round(least * n / people)), max(n - 1, 1))
        right += n / people * (_of_ball(max(n, 2), n0, rows, epsilon) if rows > 1 else 0.5)
    return min(right, one_person(epsilon))


@lru_cache(maxsize=256)
def _of_ball(n: int, n0: int, rows: int, epsilon: float) -> float:
    return of_noise(noise_on_count(rows, epsilon), n, n0, rows - 1)


def noise_on_count(rows: int, epsilon: float) -> WholeCube:
    """Return a ball's noise on the hits of one of two groups of known sizes; more groups have more noise.

    `rows` includes the row of people.
    """
    return WholeCube(0.5 / epsilon, rows, epsilon)


def _sizes(n: int, shares: Shares) -> list[int]:
    """Return the sizes of the smaller group to try; noise independent of N0 hides least where n p (1-p) is least."""
    least, most = shares.allowed(n)
    return sorted({least, round(math.sqrt(least * most)), most})


def _percent(share: float) -> str:
    return f"{100 * share:.3g}%"


@lru_cache(maxsize=4096)
def _revealed(
    mechanism: str,
    metric: str,
    n: int,
    n0: int,
    queries: int,
    epsilon: float,
    delta: float,
    shares: Shares,
    different: int | None,
) -> float:
    promised = one_person(epsilon, delta)
    public = MECHANISM_LAWS[mechanism]
    noise_on = public.noise_on
    if math.isinf(epsilon):
        return 1.0
    if noise_on == "attributes":
        return 1 / (1 + math.exp(-epsilon))
    if noise_on == "cells":
        numbers = _steps(max(1, n // least_people(epsilon)))
        found = max(of_cells(n, n0, cells, epsilon, besides=True) for cells in numbers)
        return min(found, promised)
    asked = find_metric(metric)
    proxy = metric if len(asked.parts) == 1 else "abs_sp"
    rows = queries if noise_on == "gaps" else queries * asked.sums_a_stratum
    numbers = [rows]
    if noise_on in ("cube", "directions"):
        # Common and residual sums together reveal as much as one cube of all of them.
        rows += min(rows, RANKS[-1]) if noise_on == "directions" else 0
        numbers = _steps(rows) if different is None else [min(different, rows)] * (different > 0)
    found = 0.5
    # The attacker chooses the number of rows, which determines the noise on X.
    for number in numbers:
        law = public.error(NoiseInputs(proxy, n0, n - n0, number, epsilon, delta, shares=shares))
        assert law is not None, "those that are known add noise"
        found = max(found, of_noise(scaled(law, n0 * (n - n0) / n), n, n0, number))
    return min(found, promised)


def _steps(most: int) -> list[int]:
    """Return numbers from 1 up to `most`, each at most twice the one before; `TOGETHER` is included."""
    return sorted({most, min(most, TOGETHER)} | {2**i for i in range(most.bit_length())})
