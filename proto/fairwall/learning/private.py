"""The cost of differentially private training: clipping, noise, and the noise's size (Abadi et al., CCS 2016).

A step adds up the gradients of the rows of a Poisson batch, each scaled down to norm ``clip`` at most, adds Gaussian
noise of standard deviation ``noise * clip`` to the sum, and divides by the expected size of a batch. Neighbours are two
tables of equal size, in one of which one record adds nothing, since rates follow from the size. The noise comes from a
seeded generator in floating point: good for studying the defence, not for releasing a model of people's data.

Adaptive clipping (Andrew et al., NeurIPS 2021) lets the clipping norm follow a quantile of the gradients' norms. The
number of rows below the norm, less 1/2 per row so that a row weighs 1/2 at most, is released with its own noise, of
standard deviation ``s``. Gradient and number together are one Gaussian release: with sensitivities clip and 1/2 their
noise multiplier is (z**-2 + (2 s)**-2)**-0.5, z being that of the gradient. To spend what ``noise`` says, z is
(noise**-2 - (2 s)**-2)**-0.5.
"""

from __future__ import annotations

import importlib
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from fairwall.errors import UserError

QUANTILE = 0.5
CLIP_RATE = 0.2

_MULTIPLIERS = (0.1, 1000.0)


@dataclass(frozen=True)
class Private:
    """The noise multiplier of a step, above 0, and the clipping norm, which if adaptive starts there, and moves."""

    noise: float
    clip: float = 1.0
    adaptive: bool = False

    def gradient_noise(self, expected: float) -> float:
        """Return the multiplier of the noise on the gradient itself, for batches of ``expected`` rows on average."""
        if not self.adaptive:
            return self.noise
        left = float(self.noise**-2 - (2 * self.count_noise(expected)) ** -2)
        return float(left**-0.5)

    def count_noise(self, expected: float) -> float:
        """Return the standard deviation of the noise on the number of small gradients."""
        # A twentieth of the batch serves (their section 3), but never so little that the number takes most of the cost.
        return max(expected / 20, self.noise)


def noise_multiplier(epsilon: float, delta: float, rate: float, steps: int, extra: float = 0.0) -> float:
    """Return the least noise multiplier that makes these Poisson-subsampled steps (epsilon, delta)-private.

    By the privacy loss distribution of the subsampled Gaussian mechanism, where one record adds something or nothing,
    discretised pessimistically (Doroshenko et al., PoPETs 2022); to 1e-3, on the safe side. UserError if the multiplier
    is outside 0.1 to 1000.

    Parameters
    ----------
    rate : the sampling rate, in (0, 1]; accounted for at the next multiple of 1/1024 above it, so that groups of nearly
        one size share a search.
    extra : of further Gaussian releases of all rows to pay for, the l2 sensitivity over the standard deviation; of
        several, the root of the sum of squares. 0 for none.
    """
    return _search(epsilon, delta, math.ceil(rate * 1024) / 1024, steps, extra)


@lru_cache(maxsize=256)
def epsilon_spent(noise: float, delta: float, rate: float, steps: int, extra: float = 0.0) -> float:
    """Return the least epsilon at delta of the steps taken, as of `noise_multiplier`, with the rate unrounded."""
    accountant = _accountant()
    accountant.compose(_spending(noise, rate, steps, extra))
    return float(accountant.get_epsilon(delta))


@lru_cache(maxsize=256)
def _search(epsilon: float, delta: float, rate: float, steps: int, extra: float) -> float:
    dp = importlib.import_module("dp_accounting")
    least, most = _MULTIPLIERS
    try:
        found = dp.calibrate_dp_mechanism(
            _accountant,
            lambda noise: _spending(noise, rate, steps, extra),
            epsilon,
            delta,
            dp.ExplicitBracketInterval(least, most),
            tol=1e-3,
        )
    except ValueError:  # the search has no bracket
        beyond = "and what else is paid for out of it " if extra > 0 else ""
        raise UserError(
            f"epsilon = {epsilon:,g}: no noise multiplier from {least:g} to {most:g} spends it {beyond}in {steps} steps"
        ) from None
    return float(found)


def _accountant() -> Any:
    return importlib.import_module("dp_accounting.pld").PLDAccountant(value_discretization_interval=1e-3)


def _spending(noise: float, rate: float, steps: int, extra: float) -> object:
    dp = importlib.import_module("dp_accounting")
    training = dp.SelfComposedDpEvent(dp.PoissonSampledDpEvent(rate, dp.GaussianDpEvent(noise)), steps)
    return dp.ComposedDpEvent([training, dp.GaussianDpEvent(1 / extra)]) if extra > 0 else training
