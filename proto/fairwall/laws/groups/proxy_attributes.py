"""Groups known only by probabilities for everybody, and exactly for a golden sample.

**What is secret.** Person i has probabilities q_i of k groups, which sum up to 1; in the golden sample, a simple
random sample of m of all N people, the group A_i is known too. Neighbours differ in one person's q and A. Membership of
the golden sample is not secret, and stays.

**What is released**, for each public stratum: for the golden sample the k x k table of sums of e_A q', where e_A is 1
at the group; for everybody else that of q q', of which cells (a, b) and (b, a) are one. A person's own table is
nonnegative and sums up to 1, whether the person has A and q: e_A q' as e_A and q do, q q' as q does, twice. So two such
tables differ by at most 2 in the l1 norm, and by 2 if both are of somebody who is sure to be of one group and of
another one. A person is in one of both tables, in one stratum. That is the distance of counts of people by group
(`fairwall.laws.groups.group_counts`), whose noise and proof apply unchanged: each table costs all of epsilon, and both
together no more. Probabilities are rounded to multiples of 1 / `GRID` that sum up to 1, and so tables are whole
multiples of `UNIT`.

**The estimate** needs margins of both tables: sums of q, and of 1[A = g] in the golden sample. With the
residuals r_i = e_A - q, the number of a group's people in a stratum is Q + sum of all r, and

    X = Q + N/m (sum of r over the golden sample)

has it for its mean over golden samples, however good the probabilities (the difference estimator: Sarndal,
Swensson and Wretman 1992, 6.3). Sums of q alone are right where E r = 0 in every stratum, of the selected and of others
alike: BISG's assumption, that selection is independent of the group, given the inputs of q.

**Three parts of the error.** With F = (N - m) / m the error of X is

    its noise  -  (sum of r over all others than the golden sample)  +  F (sum of r over the golden sample).

The second part is *sampling*: the actual groups of those whose group is unknown, given the probabilities. The third
is *proxy*: the part of the probabilities' error that the golden sample does not tell. With C the mean of r r' they have
the covariances (N - m) C and F^2 m C, which add up to N (N - m) / m C, that of a simple random sample. C needs no
further release: r r' = e_A e_A' - e_A q' - q e_A' + q q', of which the golden sample's table has the first three,
and the other one the last. Where the probabilities are right, C is also the mean of diag(q) - q q', which has far
less noise. Of both variances of a group the larger one is taken, so that overconfident probabilities cost width;
correlations are those of the latter. Both parts are taken as normal. Rates have Fieller's interval by simulated errors,
all three parts together, and are compared as any others (`fairwall.laws.groups.group_tables`).

**The test** of the assumption: what the golden sample adds to the top less the rate times what it adds to the bottom
is 0 in the mean, for each group, where sums of q alone give the right rate. Its distribution is that of its noise and
the proxy part.

Assigning people to their likeliest group (a threshold) is different: its errors do not cancel in sums, and gaps come
out too large (Chen, Kallus, Mao, Svacha and Udell 2019, arXiv 1811.11154).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fairwall.arrays import Bools, Floats, Ints
from fairwall.laws.groups.group_counts import noise_rate
from fairwall.laws.groups.group_tables import Share, merged_share, noise_of_sums, reach_of

GRID = 2**10
"""Number of probability steps: probabilities are whole multiples of 1 / GRID."""

UNIT = 1.0 / GRID**2

GOLDEN_MIN = 100
"""Least people in a golden sample; with fewer, its estimates are not near a normal distribution."""

_DRAWS = 16_000

_ROUNDING = 1e-6
"""Tolerance, in people; float64's rounding is far less."""

PARTS = ("noise", "sampling", "proxy")


def rate_of(epsilon: float) -> float:
    """Return the rate of balanced noise on a table in units of `UNIT` that costs epsilon."""
    return noise_rate(epsilon, 2.0 * GRID**2)


def rounded(probabilities: Floats) -> Ints:
    """Return probabilities, shape (people, groups), as whole multiples of 1 / `GRID`, each row summing to `GRID`.

    The largest remainders are rounded up; rows are not below 0 and sum to about 1.
    """
    parts = GRID * probabilities / probabilities.sum(axis=1, keepdims=True)
    whole: Ints = np.floor(parts).astype(np.int64)
    missing = GRID - whole.sum(axis=1, keepdims=True)
    order = np.argsort(whole - parts, axis=1, kind="stable")
    np.put_along_axis(whole, order, np.take_along_axis(whole, order, 1) + (np.arange(whole.shape[1]) < missing), 1)
    return whole


def _margins(groups: int) -> Floats:
    """Return the weight of each pair a <= b in a table's margin, in their order, shape (pairs, groups)."""
    first, second = np.triu_indices(groups)
    found: Floats = (np.eye(groups)[first] + np.eye(groups)[second]) / 2
    return found


@dataclass(frozen=True, eq=False)
class Proxied:
    """A rate by group and the parts of its error.

    `share`: with the whole error. `parts`: the same rate with one of `PARTS` alone. `added`: the golden sample's
    contribution, with mean 0 and the noise simulated under the probabilities' assumption.
    """

    share: Share
    parts: Mapping[str, Share]
    added: Share

    def joined(self, groups: NDArray[np.intp], count: int) -> Proxied:
        """Join groups, as `merged_share` does."""
        return Proxied(
            merged_share(self.share, groups, count),
            {name: merged_share(part, groups, count) for name, part in self.parts.items()},
            merged_share(self.added, groups, count),
        )

    def known(self) -> Proxied:
        """Return the rate for exactly known groups, in which residuals cancel: all of the error is noise."""
        noise = self.parts["noise"]
        none = replace(noise, top_noise=0 * noise.top_noise[:1], bottom_noise=0 * noise.bottom_noise[:1])
        return Proxied(noise, {"noise": noise, "sampling": none, "proxy": none}, self.added)

    def sizes(self) -> tuple[Floats, ...]:
        """Return the number of people in each group of the base, with interval: `group_tables.sizes`."""
        found, reach, people = self.share.bottom, reach_of(self.share.bottom_noise), self.share.bottom.sum()
        ends = np.ceil(found - reach), np.floor(found + reach)
        low, high = (np.clip(end, 0.0, people) for end in ends)
        return np.clip(np.rint(found), 0.0, people), low, high

    def half_widths(self) -> dict[str, Floats]:
        """Return the 95% half-widths of a rate for each part of the error alone; shape (groups,) each."""
        rate, people = self.share.estimate, np.maximum(self.share.bottom, 1.0)
        return {name: reach_of(part.top_noise - rate * part.bottom_noise) / people for name, part in self.parts.items()}

    def p_values(self, tested: Bools) -> Floats:
        """Return the p-value of each group's rate by probabilities alone, under their assumption.

        Multiplied by the number of groups tested (Bonferroni), so that any is below 0.05 with at most 5%. NaN for other
        groups.
        """
        rate, added = self.share.estimate, self.added
        drawn = np.abs(added.top_noise - rate * added.bottom_noise)
        usual = 1 + (drawn >= np.abs(added.top - rate * added.bottom) - _ROUNDING).sum(axis=0)
        return np.where(tested, np.minimum(tested.sum() * usual / (1 + len(drawn)), 1.0), math.nan)


@dataclass(frozen=True, eq=False)
class _Counted:
    """Counts of people of some strata, the golden sample's contribution, and draws of the parts of their error."""

    count: Floats
    added: Floats
    errors: Mapping[str, Floats]


@dataclass(frozen=True, eq=False)
class ProxyTable:
    """Released tables, in units of `UNIT`, and the rate of their noise, infinite for none.

    `others`: shape (strata, other groups * pairs). `golden`: shape (strata, other groups * groups * groups); the second
    group, of the probabilities, is the fastest. `groups`: of the attribute that is known by probabilities.
    """

    others: Floats
    golden: Floats
    rate: float
    groups: int

    @cached_property
    def _sizes(self) -> tuple[float, float]:
        """The numbers of people inside and outside the golden sample, which are public."""
        return float(np.rint(UNIT * self.golden.sum())), float(np.rint(UNIT * self.others.sum()))

    @property
    def people(self) -> float:
        """The number of people."""
        return sum(self._sizes)

    def proxied(self, base: Bools, hits: Bools) -> Proxied:
        """Return the share of people in the strata `hits` among those in `base`; masks of shape (strata,).

        Groups are those of the other attributes, and of this one the fastest.
        """
        sides = hits, base & ~hits
        strata = [int(side.sum()) for side in sides]
        pairs, known = (noise_of_sums(self.rate, each.shape[1], strata) for each in (self.others, self.golden))
        of_hits, of_rest = (self._counted(sides[seed], pairs[seed], known[seed], seed) for seed in (0, 1))
        counts = of_hits.count + of_rest.count
        everybody = of_hits.count.sum() / counts.sum() if base.any() else math.nan

        def share(of: str, *errors: str) -> Share:
            high, low = getattr(of_hits, of), getattr(of_rest, of)
            top, rest = (np.sum([side.errors[name] for name in errors], axis=0) for side in (of_hits, of_rest))
            own = np.ones(len(high), np.int64)
            return Share(high, high + low, top, top + rest, everybody, own, own_laws=True)

        return Proxied(share("count", *PARTS), {part: share("count", part) for part in PARTS}, share("added", "added"))

    def _counted(self, side: Bools, noise_of_pairs: Floats, noise_of_golden: Floats, seed: int) -> _Counted:
        golden, others = self._sizes
        least, most = others / golden, (others + golden) / golden
        pairs, known = self.others[side].sum(axis=0), self.golden[side].sum(axis=0)
        (have, residuals), (noise, of_residuals) = self._known(known), self._known(noise_of_golden)
        sampling, proxy = self._drawn(pairs, known, seed)  # the sides are disjoint, hence a seed for each
        return _Counted(
            self._expected(pairs) + have + least * residuals,
            most * residuals,
            {
                "noise": _repeated(self._expected(noise_of_pairs) + noise + least * of_residuals),
                "sampling": math.sqrt(others) * sampling,
                "proxy": least * math.sqrt(golden) * proxy,
                "added": most * (_repeated(of_residuals) + math.sqrt(golden) * proxy),
            },
        )

    def _expected(self, pairs: Floats) -> Floats:
        """Return the margins of tables of pairs, shape (..., other groups * groups)."""
        margins = pairs.reshape(*pairs.shape[:-1], -1, len(_margins(self.groups)))
        found: Floats = UNIT * (margins @ _margins(self.groups))
        return found.reshape(*pairs.shape[:-1], -1)

    def _known(self, golden: Floats) -> tuple[Floats, Floats]:
        """Return the golden sample's count of each group, and its excess over the probabilities' sums."""
        table = UNIT * golden.reshape(*golden.shape[:-1], -1, self.groups, self.groups)
        have, said = table.sum(axis=-1), table.sum(axis=-2)
        shape = (*golden.shape[:-1], -1)
        return have.reshape(shape), (have - said).reshape(shape)

    def _drawn(self, pairs: Floats, known: Floats, seed: int) -> Floats:
        """Simulate normal numbers with the covariance of one person's residuals, shape (2, draws, groups)."""
        golden, others = self._sizes
        size, shape = self.groups, (-1, self.groups, self.groups)
        first, second = np.triu_indices(size)
        half = UNIT * pairs.reshape(-1, len(first)) / others
        products = np.zeros((len(half), size, size))
        products[:, first, second] += half / 2
        products[:, second, first] += half / 2
        table = UNIT * known.reshape(shape) / golden
        alone = np.eye(size)
        right = alone * products.sum(axis=2, keepdims=True) - products
        found = alone * table.sum(axis=2, keepdims=True) - table - table.transpose(0, 2, 1) + products
        least = UNIT / others  # for a group of probability 0, whose noisy variance may be below 0
        said = np.maximum(np.diagonal(right, axis1=1, axis2=2), least)
        scale = np.sqrt(np.maximum(np.diagonal(found, axis1=1, axis2=2), said))
        alike = right / np.sqrt(said[:, :, np.newaxis] * said[:, np.newaxis, :])
        values, vectors = np.linalg.eigh(np.clip(alike, -1.0, 1.0))
        roots = vectors * np.sqrt(np.maximum(values, 0.0))[:, np.newaxis, :]
        lengths = np.sqrt(np.square(roots).sum(axis=2, keepdims=True))
        drawn = np.random.default_rng(seed).standard_normal((2, _DRAWS, len(roots), size))
        alone_normal = np.einsum("pdok,ogk->pdog", drawn, roots / np.maximum(lengths, 1e-12))
        found_normal: Floats = alone_normal * scale
        return found_normal.reshape(2, _DRAWS, -1)


def _repeated(drawn: Floats) -> Floats:
    """Repeat the draws until there are `_DRAWS` of them."""
    return np.tile(drawn, (-(-_DRAWS // len(drawn)), 1))[:_DRAWS]
