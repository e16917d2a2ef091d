"""The tester's law of counts by group: sound noise becomes uniform numbers, and noise of another law does not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from compliance.answers.group_rows import ball_noise
from compliance.noise.sampling import Seeded
from fairwall.laws.groups.group_counts import balanced
from fairwall.laws.noise.row_noise import Ball
from sim.conformance import group_law, law
from sim.conformance.calls import ProtocolViolation
from sim.conformance.world import Result

RNG = np.random.default_rng(3)


# A false alarm has a probability of at most 1e-10 each.
@pytest.mark.few(2)
@pytest.mark.parametrize(("rate", "groups"), [(1e-4, 8), (0.03, 2), (0.3, 6), (9.0, 3)])
def test_noise_of_its_law_becomes_uniform(rate: float, groups: int) -> None:
    uniform = group_law.uniform(balanced(RNG, rate, 1500, groups).astype(np.float64), rate)
    assert uniform.shape == (1500, groups - 1)
    law.require_noise_everywhere(2 * uniform - 1)


def test_half_of_the_noise_and_none_are_convicted() -> None:
    for rate, groups in [(1e-4, 8), (0.3, 6)]:
        for noise in (balanced(RNG, 2 * rate, 400, groups), np.zeros((400, groups))):
            with pytest.raises(ProtocolViolation):
                law.require_noise(2 * group_law.uniform(noise.astype(np.float64), rate).ravel() - 1)


def test_the_same_noise_twice_is_convicted() -> None:
    noise = balanced(RNG, 0.2, 400, 5).astype(np.float64)
    one, other = (group_law.uniform(noise, 0.2).ravel() for _ in range(2))
    with pytest.raises(ProtocolViolation, match="the same noise"):
        law.require_unrelated(*(Result(None, uniform=each, discrete=True) for each in (one, other)))  # type: ignore[arg-type]


BALLS = [Ball(1.0, 2, (1,) * 6), Ball(0.3, 4, (1, 1, 1 << 15)), Ball(8.0, 8, (1,) * 21), Ball(64.0, 3, (1,) * 4)]


def of_ball(ball: Ball, drawn: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Uniform numbers of each draw's rows, shape (draws, rows, groups + 1), and of its T."""
    told = [group_law.uniform_of_ball(rows.astype(float), ball.rate, np.array(ball.reaches, float)) for rows in drawn]
    return np.array([rows for rows, _ in told]), np.array([size for _, size in told])


@pytest.mark.few(1)
@pytest.mark.parametrize("ball", BALLS[:3])
def test_noise_of_a_ball_becomes_uniform(ball: Ball) -> None:
    rows, sizes = of_ball(ball, ball_noise(Seeded(RNG), ball, 150))
    law.require_noise_everywhere(2 * rows.reshape(-1, ball.groups + 1) - 1)
    law.require_noise_everywhere(2 * rows.reshape(150, -1) - 1)
    law.require_noise(2 * sizes - 1)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("ball", "twin"), [(BALLS[0], "none"), (BALLS[0], "half"), (BALLS[1], "twice"), (BALLS[1], "apart")]
)
def test_another_ball_is_convicted(ball: Ball, twin: str) -> None:
    match twin:
        case "none":
            drawn = np.zeros((100, len(ball.reaches), ball.groups))
        case "apart":
            each = [ball_noise(Seeded(RNG), replace(ball, reaches=(reach,)), 900) for reach in ball.reaches]
            drawn = np.concatenate(each, axis=1)
        case _:
            factor = 2.0 if twin == "half" else 0.5
            drawn = ball_noise(Seeded(RNG), replace(ball, rate=factor * ball.rate), 900)
    rows, sizes = of_ball(ball, drawn)
    with pytest.raises(ProtocolViolation):
        law.require_noise(2 * np.append(rows, sizes) - 1)
