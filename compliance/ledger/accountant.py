"""The privacy loss of a series of answers, and whether a budget covers one more.

Pure arithmetic; the ledger makes a charge and its answer one durable transaction. All losses of one budget are in one
unit: privacy with respect to one relation between neighbours.

A developer chooses each loss after earlier answers, so a rule has to be a privacy filter (Rogers, Roth, Ullman, Vadhan,
NeurIPS 2016): it bounds the whole series however the losses were chosen. `composed_epsilon` states the theorem of each
rule. Where no loss has a delta, the plain sum bounds the privacy loss surely, on every path: each rule allows a series
to go on while either bound allows it, and no delta is used twice.

Budgets are exact. An epsilon or a delta is the decimal that it was written as (`fairwall.laws.privacy.amounts`); sums
are exact, and so are comparisons: ten charges of 0.1 use up a budget of 1, and nothing fits after them. Where a rule
has roots and logarithms its epsilon is rounded up. The remaining epsilon is rounded down, so that all of it can be
requested.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from enum import StrEnum
from functools import lru_cache

from fairwall.laws.noise.gaussian import gaussian_epsilon, pure_shift
from fairwall.laws.privacy.amounts import (
    EXACT,
    at_least,
    at_most,
    filter_order,
    laplace_divergence,
    renyi_epsilon,
    response_divergence,
    written,
)

_INFINITE = Decimal("Infinity")

_ROUGHLY = Context(prec=50)
_RAISED = _ROUGHLY.add(Decimal(1), Decimal("1e-40"))
"""Factor that turns a result of a few operations at 50 digits into an upper bound: each is off by a relative 1e-49."""

_CONVOLUTION_ERROR = 1e-12
"""Subtracted from delta for a convolution: the error of float64 came to 5e-14 of delta, in 50,000 losses."""

# Points of the grid that a Laplace loss is laid on for `Rule.TIGHT`. Rounding is upwards, so a coarse grid costs budget
# and never privacy.
_GRID_POINTS = 100

_SMALL = Decimal("1e-6")
_CLOSED_FORM_RAISED = Decimal("1.000000001")
"""Factor far above the float64 error in a closed form of `Rule.TIGHT`."""

_ALIKE, _UNLIKE = Decimal("0.5"), Decimal("0.16")
"""Shares of delta under `Rule.TIGHT`: the first once and the second three times are below 1. See `_tight`."""

_EXPONENT_MAX = 700.0
"""Largest epsilon whose exponential is finite; a convolution could not tell a larger loss from a total one."""


class Neighbours(StrEnum):
    """The difference between two neighbouring data sets."""

    A_FLIP = "a-flip"
    """One person's protected attribute."""
    ATTRIBUTES = "attributes"
    """One person's sensitive attributes, all of them, in a release under local differential privacy."""
    RECORD = "record"
    """One whole record."""
    USER = "user"
    """All the records of one person."""


class Rule(StrEnum):
    """Composition of losses, see `composed_epsilon`."""

    BASIC = "basic"
    ADVANCED = "advanced"
    ZCDP = "zcdp"
    TIGHT = "tight"


class LossKind(StrEnum):
    """The known distribution of the noise behind a loss, besides its epsilon and delta."""

    ANY = "any"
    NOTHING = "nothing"
    LAPLACE = "laplace"
    GAUSSIAN = "gaussian"


@dataclass(frozen=True)
class Loss:
    """The privacy loss of one answered batch; ValueError for a number out of range, or NaN.

    `epsilon`: above 0, or 0 for `FREE`; may be infinite. `delta`: in [0, 1). `multiplier`: of Gaussian noise: its
    standard deviation over the L2 sensitivity. 0 for every other law. `Rule.ZCDP` and `Rule.TIGHT` work from it, the
    other rules from epsilon and delta.
    """

    epsilon: float
    delta: float = 0.0
    law: LossKind = LossKind.ANY
    multiplier: float = 0.0

    def __post_init__(self) -> None:
        if self.law is LossKind.NOTHING and (self.epsilon or self.delta):
            raise ValueError("a charge of nothing has no epsilon and no delta")
        if not self.epsilon > 0 and self.law is not LossKind.NOTHING:
            raise ValueError("a charge must be above 0")
        if not 0 <= self.delta < 1:
            raise ValueError("a charge's delta must be at least 0 and below 1")
        if not (0 < self.multiplier < math.inf if self.law is LossKind.GAUSSIAN else self.multiplier == 0):
            raise ValueError("Gaussian noise, and no other, has a multiplier above 0")


FREE = Loss(0.0, law=LossKind.NOTHING)
"""The loss of an answer that is made from what was released and paid for before."""


def pure(epsilon: float, delta: float = 0.0) -> Loss:
    """Return the loss of a mechanism of which only epsilon (and delta) is known."""
    return Loss(epsilon, delta)


def composed_epsilon(losses: Mapping[Loss, int], delta: float, rule: Rule, limit: float = math.inf) -> Decimal:
    """Return the least epsilon for which a rule proves (epsilon, delta)-differential privacy of a series.

    A plain sum is exact, everything else rounded up; infinite if the rule proves nothing at this delta, 0 for no
    losses.

    Parameters
    ----------
    losses : the number of charges of each loss.
    delta : in [0, 1).
    rule : one of these:
        * ``basic``: epsilons add up, and so do deltas (a filter by Rogers et al. 2016).
        * ``advanced``: with half of delta kept for the losses' own deltas and d the other half, sum(e^2)/2 + sqrt(2
          ln(1/d) sum(e^2)) (Whitehouse, Ramdas, Rogers, Wu, ICML 2023: the rate of Dwork, Rothblum and Vadhan's theorem
          for losses that are chosen as the series goes). The halves are fixed beforehand, as the theorem demands.
        * ``zcdp``: rho + 2 sqrt(rho ln(1/delta)) with rho the sum (Bun and Steinke 2016, Proposition 1.3; a filter by
          Feldman and Zrnic, NeurIPS 2021). A loss with a delta that is not Gaussian has no rho.
        * ``tight``: for Gaussian noise, of whatever multipliers, the exact value: the squares of 1/multiplier add up
          (fully adaptively: Smith and Thakurta 2022). For other losses that are all equal, the privacy loss
          distributions of the mechanisms, convolved (Koskela et al. 2020; `dp-accounting`), at half of delta. A mixed
          series has a filter at 0.16 of delta: Gaussian if any of its noise is, else Renyi's
          (`fairwall.laws.privacy.amounts`).
    limit : the budget's epsilon, which fixes the order of Renyi's filter before the first loss; infinite for no limit,
        where that filter proves nothing.
    """
    if not losses:
        return Decimal(0)
    surely = _INFINITE if any(loss.delta for loss in losses) else _epsilons(losses)
    return min(surely, _RULES[rule](losses, written(delta), limit))


@dataclass(frozen=True)
class Budget:
    """A limit on the privacy loss of all charges together; ValueError for a number out of range, or NaN.

    `epsilon`: at least 0; infinite for no limit. `delta`: in [0, 1). For every rule but ``basic`` epsilon is stated at
    this delta.
    """

    epsilon: float
    delta: float = 0.0
    rule: Rule = Rule.BASIC

    def __post_init__(self) -> None:
        if not self.epsilon >= 0:
            raise ValueError("a budget's limit must be at least 0")
        if not 0 <= self.delta < 1:
            raise ValueError("a budget's delta must be at least 0 and below 1")

    def spent(self, losses: Mapping[Loss, int]) -> float:
        """Return the epsilon of these charges, at this budget's delta; rounded up."""
        return at_least(self._composed(losses))

    def remaining(self, losses: Mapping[Loss, int]) -> float:
        """Return the epsilon that is left, rounded down, at least 0; infinite if there is no limit."""
        return at_most(self._left(losses))

    def needed(self, losses: Mapping[Loss, int], loss: Loss) -> float:
        """Return the epsilon that one more loss would use, rounded up; more than the remaining if it is not covered."""
        before, after = self._composed(losses), self._composed(_with(losses, loss))
        with localcontext(EXACT):
            return at_least(after if after.is_infinite() else after - before)

    def affords(self, losses: Mapping[Loss, int], loss: Loss) -> bool:
        """Return whether one more loss stays within the budget, after those charged before."""
        return math.isinf(self.epsilon) or self._composed(_with(losses, loss)) <= written(self.epsilon)

    def _composed(self, losses: Mapping[Loss, int]) -> Decimal:
        return composed_epsilon(losses, self.delta, self.rule, self.epsilon)

    def _left(self, losses: Mapping[Loss, int]) -> Decimal:
        if math.isinf(self.epsilon):
            return _INFINITE
        with localcontext(EXACT):
            return max(Decimal(0), written(self.epsilon) - self._composed(losses))


def _with(losses: Mapping[Loss, int], loss: Loss) -> Mapping[Loss, int]:
    return {**losses, loss: losses.get(loss, 0) + 1}


def _basic(losses: Mapping[Loss, int], delta: Decimal, _limit: float) -> Decimal:
    return _epsilons(losses) if _deltas(losses) <= delta else _INFINITE


def _advanced(losses: Mapping[Loss, int], delta: Decimal, _limit: float) -> Decimal:
    with localcontext(EXACT):
        half = delta / 2
        if not half or _deltas(losses) > half:
            return _INFINITE
        squares = _total(losses, lambda loss: written(loss.epsilon) * written(loss.epsilon))
    with localcontext(_ROUGHLY):
        return (squares / 2 + (-2 * half.ln() * squares).sqrt()) * _RAISED


def _zcdp(losses: Mapping[Loss, int], delta: Decimal, _limit: float) -> Decimal:
    if not delta:
        return _INFINITE
    with localcontext(_ROUGHLY):
        rho = _total(losses, _rho)
        return (rho + 2 * (-delta.ln() * rho).sqrt()) * _RAISED


def _tight(losses: Mapping[Loss, int], delta: Decimal, limit: float) -> Decimal:
    """Return an upper bound on a series' loss that depends on the kinds of its losses.

    The kinds may depend on answers, so several bounds hold at once, each on the paths of its kind. Their deltas have to
    add up to at most delta:

    * a series that begins with Gaussian noise stays under one filter, whatever follows: mu^2 = sum of 1/multiplier^2,
      and `pure_shift` squared for every other loss. Its limit at 0.16 delta, for mixed ones, is below that at delta,
      for Gaussian noise alone: delta.
    * a series that begins otherwise goes on with equal losses (0.5), or is mixed with no Gaussian noise (0.16, and as
      much for the losses' own deltas: a mechanism with a delta is a pure one but for an event of that probability,
      Murtagh and Vadhan 2016), or has Gaussian noise (0.16).
    """
    if all(loss.law is LossKind.GAUSSIAN for loss in losses):
        return _as_gaussian(losses, delta)
    with localcontext(EXACT):
        alike, unlike = delta * _ALIKE, delta * _UNLIKE
    if len(losses) == 1:
        return _convolved(losses, alike)
    others = {loss: count for loss, count in losses.items() if loss.law is not LossKind.GAUSSIAN}
    if len(others) < len(losses):
        return _INFINITE if _deltas(others) else _as_gaussian(losses, unlike)
    return _renyi(losses, unlike, limit) if _deltas(losses) <= unlike else _INFINITE


def _as_gaussian(losses: Mapping[Loss, int], delta: Decimal) -> Decimal:
    shift = math.sqrt(math.fsum(count * _shift(loss) ** 2 for loss, count in losses.items()))
    if not delta or not 0 < shift < math.inf:
        return _INFINITE
    return Decimal(_gaussian_epsilon(1 / shift, float(delta))) * _CLOSED_FORM_RAISED


def _shift(loss: Loss) -> float:
    """Return the distance between two normal distributions of variance 1 that dominate a loss, apart from its delta."""
    return 1 / loss.multiplier if loss.law is LossKind.GAUSSIAN else pure_shift(loss.epsilon)


def _renyi(losses: Mapping[Loss, int], delta: Decimal, limit: float) -> Decimal:
    if not delta or not 0 < limit < math.inf:
        return _INFINITE
    order = filter_order(limit, float(delta))
    divergence = math.fsum(
        count * (laplace_divergence if loss.law is LossKind.LAPLACE else response_divergence)(loss.epsilon, order)
        for loss, count in losses.items()
    )
    return Decimal(renyi_epsilon(divergence, order, float(delta))) * _CLOSED_FORM_RAISED


def _convolved(losses: Mapping[Loss, int], delta: Decimal) -> Decimal:
    ((loss, count),) = losses.items()
    if delta <= _CONVOLUTION_ERROR or loss.epsilon > _EXPONENT_MAX:
        return _INFINITE
    return Decimal(_convolved_epsilon(loss, count, float(delta) - _CONVOLUTION_ERROR))


_RULES = {Rule.BASIC: _basic, Rule.ADVANCED: _advanced, Rule.ZCDP: _zcdp, Rule.TIGHT: _tight}


def _rho(loss: Loss) -> Decimal:
    """Return a loss in zero-concentrated differential privacy (Bun and Steinke, TCC 2016); infinite if it has none.

    Gaussian noise has 1/(2 multiplier^2) (Proposition 1.6), and epsilon alone has epsilon tanh(epsilon/2), below the
    epsilon^2/2 of Proposition 1.4: randomised response dominates whatever has epsilon (Murtagh and Vadhan 2016). Its
    Renyi divergence of order a is ln(cosh t / cosh s) / (a - 1) with s = epsilon/2 and t = (2a - 1) s. ln cosh of a
    root of u is concave in u, so its tangent at u = s^2 is above it:

        ln(cosh t / cosh s) <= (t^2 - s^2) tanh(s) / (2s) = a (a - 1) epsilon tanh(epsilon/2).

    No smaller rho will do: for a near 1 both sides agree.
    """
    if loss.law is LossKind.GAUSSIAN:
        return Decimal("0.5") / Decimal(loss.multiplier) / Decimal(loss.multiplier)
    if loss.delta:
        return _INFINITE
    epsilon = written(loss.epsilon)
    if epsilon > _EXPONENT_MAX:
        return epsilon
    # The formula below would lose the digits of a small epsilon.
    if epsilon < _SMALL:
        return epsilon * epsilon / 2
    power = epsilon.exp()
    return epsilon * (power - 1) / (power + 1)


_gaussian_epsilon = lru_cache(maxsize=1024)(gaussian_epsilon)


@lru_cache(maxsize=1024)
def _convolved_epsilon(loss: Loss, count: int, delta: float) -> float:
    # Imported by name when needed: the package takes a second to load, and has no types.
    plds = importlib.import_module("dp_accounting.pld.privacy_loss_distribution")
    if loss.law is LossKind.LAPLACE:
        one = plds.from_laplace_mechanism(1 / loss.epsilon, value_discretization_interval=loss.epsilon / _GRID_POINTS)
    else:
        # Randomised response dominates whatever has this epsilon and delta, and loses +-epsilon or everything: on a
        # grid of epsilon nothing is rounded.
        one = plds.from_privacy_parameters(
            plds.common.DifferentialPrivacyParameters(loss.epsilon, loss.delta),
            value_discretization_interval=loss.epsilon,
        )
    return float(one.self_compose(count).get_epsilon_for_delta(delta))


def _epsilons(losses: Mapping[Loss, int]) -> Decimal:
    with localcontext(EXACT):
        return _total(losses, lambda loss: written(loss.epsilon))


def _deltas(losses: Mapping[Loss, int]) -> Decimal:
    with localcontext(EXACT):
        return _total(losses, lambda loss: written(loss.delta))


def _total(losses: Mapping[Loss, int], measure: Callable[[Loss], Decimal]) -> Decimal:
    """Return the sum of a measure under the caller's decimal context."""
    return sum((count * measure(loss) for loss, count in losses.items()), Decimal(0))
