"""Noise of gaps whose predictions only the server sees, and the rest of such answers.

The gap of noisy sums is off by (b X' - a X) s, where X and X' are independent and have the noise's distribution: X is
that of the disadvantaged's sum, X' that of the total over everybody. With a = 1/n0 + 1/n1 and b = 1/n1 these move the
gap; s is the distance of a value of 0 or 1 from the centre that is subtracted.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from fairwall.laws.noise.count_noise import laplace_scales
from fairwall.laws.noise.distributions import Gaussian
from fairwall.laws.noise.linf_ball import cube_scales
from fairwall.rpc import arrays
from sim.conformance import answer_checks
from sim.conformance.audits import AuditStep
from sim.conformance.calls import ProtocolViolation
from sim.conformance.promise import Array, quantile
from sim.conformance.services import on
from sim.conformance.step_base import Words
from sim.conformance.world import CaseState

_BARE = 1e-12
"""Error below which an answer has no noise; predictions lie on a grid, so noise is that small once in 10^9 times."""

_DRAWS, _FEW = 400_000, 8

_SAME_WIDTH, _SAME_PROBABILITY = 1.01, 5e-4


class Widths(Words):
    """A step about models with very different predictions, between which the rest of an answer must not distinguish.

    Intervals have equal widths, and P(gap > threshold) is that of the largest possible variance of predictions.
    """

    do: Literal["widths"]
    epsilon: float
    threshold: float = 0.05

    def run(self, world: CaseState) -> None:
        """Request answers, and compare them."""
        groups, widths = world.people().protected, list[float]()
        size = len(groups)
        halves = (np.arange(size) % 2).astype(np.float64)
        few = np.concatenate([np.flatnonzero(groups == group)[:2] for group in (0, 1)])
        rows = [halves, np.full(size, 0.5), np.arange(size) / size, np.isin(np.arange(size), few).astype(np.float64)]
        # The disadvantaged count is bought first, and known then.
        for number, row in enumerate([np.full(size, 0.5), *rows]):
            own = {"epsilon": self.epsilon if number else 2.0**19, "threshold": self.threshold}
            step = on(world.service, AuditStep(do="audit", id=f"{world.step}-{number}", metric="sp", **own))
            world.open_account(step.caller, "")
            asked = step.asked_about(world, row[np.newaxis])
            seen = step.ask(world, asked)
            step.expect.check_end(seen)
            step.check_answer(world, asked, seen)
            told_of = (getattr(seen.messages[0], name) for name in ("low", "high", "probability_above"))
            low, high, above = (np.asarray(arrays.from_message(each), np.float64) for each in told_of)
            if not number:
                continue
            widths.append(float(high[0] - low[0]))
            law = Gaussian(widths[-1] / 2 / quantile(Gaussian(1.0), 0.05))
            expected = answer_checks.probabilities(
                (low + high) / 2, law, halves[np.newaxis], self.threshold, absolute=False
            )
            if not abs(above[0] - expected[0]) <= _SAME_PROBABILITY:
                raise ProtocolViolation(
                    f"P(gap > threshold) is {above[0]:.6g}; the largest variance makes it {expected[0]:.6g}"
                )
        if not max(widths) <= _SAME_WIDTH * min(widths):  # noisy numbers move them a little
            raise ProtocolViolation(
                f"the width of intervals depends on what models predict: from {min(widths)} to {max(widths)}"
            )


def with_totals(errors: Array, n0: int, n: int, mechanism: str, epsilon: float) -> Array:
    """Map the noise of a batch's gaps, with n0 known, to independent numbers that are uniform on [-1, 1].

    All coordinates of one cube share its size: one number is made, from one gap's noise or from that of many together.
    """
    if np.count_nonzero(np.abs(errors) < _BARE) > 1:
        raise ProtocolViolation("answers about predictions that nobody sees have no noise")
    rng, models = np.random.default_rng(), len(errors)
    by_total, by_sum = 1 / (n - n0), 1 / n0 + 1 / (n - n0)
    if mechanism == "counts":
        drawn = rng.laplace(0, laplace_scales(models, epsilon, size_known=True).sums, (2, _DRAWS))
        noise = drawn[1] * by_total - drawn[0] * by_sum
    else:
        sizes = cube_scales(models, epsilon, size_known=True).law.draw_sizes(rng, (2, _DRAWS // models, 1))
        drawn = sizes * rng.uniform(-1, 1, (2, _DRAWS // models, models)) / 2
        noise = drawn[1] * by_total - drawn[0] * by_sum
        of_all = models > _FEW
        noise, errors = (np.linalg.norm(each, axis=-1) if of_all else each[..., 0] for each in (noise, errors))
    at = np.searchsorted(np.sort(noise), np.atleast_1d(errors))
    return 2 * (at + rng.random(at.shape)) / (len(noise) + 1) - 1
