"""Noise: its laws, its grid, and the float64 leak that the grid closes.

Every statistical test of `Seeded` has a fixed seed; `System` has none to fix. Each has a false-alarm rate of 1e-7.
"""

import math
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.stats
from numpy.typing import NDArray

from compliance.noise import sampling
from compliance.noise.sampling import STEPS_MAX, Noise, Seeded, System, step_for
from compliance.noise.uniform_bits import KeyedBits
from fairwall.laws.noise.distributions import Cauchy, Gaussian, Laplace, NoiseDistribution
from fairwall.laws.noise.linf_ball import CubeNoise

FALSE_ALARM = 1e-7
SEEDED, SYSTEM, KEYED = Seeded(np.random.default_rng(5)), System(), System(KeyedBits(bytes(range(32))))
SOURCES = pytest.mark.parametrize("noise", [SEEDED, SYSTEM], ids=["seeded", "system"])


class Given(random.Random):
    """Bits that are given, some at a time."""

    def __init__(self, bits: Iterator[int]) -> None:
        self._bits = bits

    def getrandbits(self, _: int, /) -> int:
        return next(self._bits)


STEP = 2.0**-20


def on_grid(values: NDArray[np.float64], step: float) -> bool:
    """Whether every value is exactly a whole multiple of the step."""
    return all((value / step).is_integer() for value in values.tolist())


@pytest.mark.parametrize(
    ("noise", "law", "reference"),
    [
        (SEEDED, "gaussian", scipy.stats.norm),
        (SEEDED, "cauchy", scipy.stats.cauchy),
        (SYSTEM, "laplace", scipy.stats.laplace),
        (SYSTEM, "gaussian", scipy.stats.norm),
        (SYSTEM, "cauchy", scipy.stats.cauchy),
        (KEYED, "laplace", scipy.stats.laplace),
    ],
)
def test_noise_follows_its_law_on_the_grid(noise: Noise, law: str, reference: scipy.stats.rv_continuous) -> None:
    released = getattr(noise, law)(np.full(4000, 0.3), 0.7, STEP)
    assert on_grid(released, STEP)
    assert scipy.stats.kstest(released - 0.3, reference(scale=0.7).cdf).pvalue > FALSE_ALARM


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("noise", "law"),
    [
        *((SYSTEM, Laplace(0.7)), (SEEDED, Gaussian(0.7)), (SYSTEM, Cauchy(0.7)), (SEEDED, Laplace(0.7))),
        (SEEDED, Cauchy(0.7)),
    ],
)
def test_half_of_the_noise_is_within_its_median(noise: Noise, law: NoiseDistribution) -> None:
    # A scale that is wrong by a tenth and more is found, which the whole law at once hides.
    draws = 10_000
    released = getattr(noise, type(law).__name__.lower())(np.full(draws, 0.25), law.scale, STEP)
    within = int(np.count_nonzero(np.abs(released - 0.25) < law.median_abs()))
    assert scipy.stats.binomtest(within, draws, 0.5).pvalue > FALSE_ALARM


def test_an_exact_sampler_gets_the_scale_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    import opendp.measurements

    make, scales = opendp.measurements.make_gaussian, []

    def made(*arguments: object, scale: float) -> object:
        scales.append(scale)
        return make(*arguments, scale=scale)

    monkeypatch.setattr(opendp.measurements, "make_gaussian", made)
    System().gaussian(np.zeros(3), 0.7, 2.0**-10)
    assert scales == [0.7 * 2.0**10]


def test_laplace_noise_is_the_difference_of_two_geometric_numbers_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    rates = []

    def drawn(rate: Fraction, size: int, _: random.Random) -> NDArray[np.int64]:
        rates.append(rate)
        return np.array([5, 0, 1, 2, 7, 1])[:size]

    monkeypatch.setattr(sampling, "geometric", drawn)
    assert System().laplace(np.array([0.5, 0.5, 0.5]), 0.75, 0.25).tolist() == [0.5 + 0.75, 0.5 - 1.75, 0.5]
    assert rates == [Fraction(1, 3)]


def kept(sums: list[int], lost: int | None, sides: int, monkeypatch: pytest.MonkeyPatch) -> tuple[int, Fraction]:
    """What is kept of these sums of geometric numbers where one coin is lost, and the odds of all coins tossed."""
    coming, odds, tossed = iter(sums), Fraction(1), 0

    def drawn(_rate: Fraction, size: int, _: random.Random) -> NDArray[np.int64]:
        assert size == sides + 1
        return np.array([next(coming)] + [0] * sides)

    def below(bound: int) -> int:
        nonlocal odds, tossed
        winning = 2 * sums[0 if lost is None or tossed <= lost else 1] + 1
        odds *= Fraction(winning, bound)
        tossed += 1
        return winning - (tossed - 1 != lost)

    monkeypatch.setattr(sampling, "geometric", drawn)
    bits = random.SystemRandom()
    monkeypatch.setattr(bits, "randrange", below)
    return sampling._cube_size(Fraction(1, 3), sides, bits), odds


@pytest.mark.parametrize("sides", [1, 3])
def test_the_cube_is_exactly_its_law_by_enumeration(sides: int, monkeypatch: pytest.MonkeyPatch) -> None:
    ratio, most = Fraction(1, 5), 80
    # A coin that is lost has another sum drawn.
    for lost in range(sides):
        assert kept([4, 9], lost, sides, monkeypatch)[0] == 9
    of_size = []
    for t in range(most):
        size, odds = kept([t], None, sides, monkeypatch)
        assert size == t
        of_size.append(math.comb(t + sides, sides) * ratio**t * odds)
    # Evenly from the cube of T: P(z) for z with max|z| = m, in exact fractions but for what is beyond `most`.
    each = [sum(p / (2 * t + 1) ** sides for t, p in enumerate(of_size) if t >= m) for m in range(12)]
    for m, p in enumerate(each):
        assert p / each[0] == pytest.approx(ratio**m, rel=1e-12)
        shell = (2 * m + 1) ** sides - (2 * m - 1) ** sides if m else 1
        expected = (
            shell
            * ratio**m
            / sum(((2 * k + 1) ** sides - (2 * k - 1) ** sides * (k > 0)) * ratio**k for k in range(most))
        )
        assert shell * p / sum(of_size) == pytest.approx(float(expected), rel=1e-12)


def test_even_numbers_are_even(monkeypatch: pytest.MonkeyPatch) -> None:
    # In words of 5 bits: of the 32 each of 0 .. 6 is made of four, and four are drawn again.
    monkeypatch.setattr(sampling, "_BITS", 5)
    made = []
    for word in range(32):
        bits = iter([word, 31])
        number = sampling._below(7, Given(bits))
        if len(list(bits)):
            made.append(number)
    assert sorted(made) == sorted(list(range(7)) * 4)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("noise", "sides", "draws"), [(SYSTEM, 3, 1500), (SEEDED, 1, 4000), (SEEDED, 3, 4000), (KEYED, 3, 1500)]
)
def test_a_cube_on_the_integers_is_the_discrete_law(noise: Noise, sides: int, draws: int) -> None:
    scale = 1.5
    drawn = np.array([noise.cube(np.full(sides, 7.0), scale, 1.0) - 7 for _ in range(draws)])
    assert on_grid(drawn.ravel(), 1.0)
    m = np.arange(8)
    shells = ((2 * m + 1.0) ** sides - np.where(m, (2 * m - 1.0) ** sides, 0)) * np.exp(-m / scale)
    k = np.arange(400)
    whole = float((((2 * k + 1.0) ** sides - np.where(k, (2 * k - 1.0) ** sides, 0)) * np.exp(-k / scale)).sum())
    seen = np.bincount(np.minimum(np.abs(drawn).max(axis=1).astype(int), 8), minlength=9)
    expected = np.append(shells, whole - shells.sum()) / whole * draws
    assert scipy.stats.chisquare(seen, expected).pvalue > FALSE_ALARM
    # Every place of a shell is as likely: by sign and by coordinate.
    for of in drawn.T:
        signs = int((of > 0).sum()), int((of < 0).sum())
        assert scipy.stats.binomtest(signs[0], sum(signs), 0.5).pvalue > FALSE_ALARM


@SOURCES
def test_a_cube_on_a_fine_grid_has_its_coordinates_law(noise: Noise) -> None:
    law, draws = CubeNoise(0.7, 4), 1000
    drawn = np.array([noise.cube(np.full(4, 0.3), law.scale, STEP) for _ in range(draws)])
    assert on_grid(drawn.ravel(), STEP)
    for of in np.abs(drawn - 0.3).T:
        for level in (0.1, 0.5, 0.9):
            within = int((of < law.reach(level)).sum())
            assert scipy.stats.binomtest(within, draws, level).pvalue > FALSE_ALARM


def test_rows_of_cubes_have_each_a_size_of_their_own() -> None:
    drawn = Seeded(np.random.default_rng(2)).cubes(np.zeros((3000, 2)), 1.0, STEP)
    sizes = np.abs(drawn)
    # They share T: large ones come together, in one row and in no others.
    assert scipy.stats.spearmanr(sizes[:, 0], sizes[:, 1]).pvalue < FALSE_ALARM
    assert scipy.stats.spearmanr(sizes[1:, 0], sizes[:-1, 1]).pvalue > FALSE_ALARM


def test_cauchy_noise_is_its_quantile_of_the_point_that_was_drawn() -> None:
    for value, scale in ((0.0, 1.0), (0.3, 0.7), (-123.456, 1e6), (2.0**40, 2.0**-3)):
        # A point of the half disk at an angle that is given, not drawn: its quantile, in integers.
        step = 2.0**-6
        for share in np.linspace(-0.49, 0.49, 29).tolist():
            angle = math.pi * abs(share)
            point = [int(0.9 * math.sin(angle) * 2**53) << 75, int(0.9 * math.cos(angle) * 2**53) << 75]
            bits = iter([int(share > 0), *point])
            (released,) = System(Given(bits)).cauchy(np.array([value]), scale, step).tolist()
            quantile = scipy.stats.cauchy(value, scale).ppf(0.5 + share)
            assert released == pytest.approx(quantile, rel=1e-9, abs=step / 2 * 1.000001)


@SOURCES
def test_laplace_on_the_integers_is_the_discrete_law(noise: Noise) -> None:
    draws, scale = 20_000, 0.8
    drawn = noise.laplace(np.full(draws, 7.0), scale, 1.0) - 7
    x = math.exp(-1 / scale)
    for k in (0, 1, -1, 2):
        expected = (1 - x) / (1 + x) * x ** abs(k)
        hits = int(np.count_nonzero(drawn == k))
        assert scipy.stats.binomtest(hits, draws, expected).pvalue > FALSE_ALARM / 4


def test_no_noise_only_rounds() -> None:
    for noise in (SEEDED, SYSTEM):
        for law in ("laplace", "gaussian", "cauchy", "cube"):
            released = getattr(noise, law)(np.array([0.3, -1e-9, -0.75]), 0.0, 0.25)
            assert released.tolist() == [0.25, 0.0, -0.75]
            assert not np.signbit(released[1])  # -0.0 would be one more bit


def test_far_tails_stay_exact() -> None:
    for noise in (SEEDED, SYSTEM):
        released = noise.cauchy(np.zeros(200), 1e300, 1.0)
        assert np.abs(released).max() == STEPS_MAX
        assert on_grid(released, 1.0)


@SOURCES
def test_other_draws(noise: Noise) -> None:
    draws = 5000
    assert scipy.stats.binomtest(int(noise.bernoulli(0.3, draws).sum()), draws, 0.3).pvalue > FALSE_ALARM
    assert noise.bernoulli(0.0, 5).tolist() == [False] * 5
    assert noise.bernoulli(1.0, 5).tolist() == [True] * 5
    for exponent in (0.2, 2.3):
        hits = int(noise.bernoulli_exp(np.full(draws, exponent)).sum())
        assert scipy.stats.binomtest(hits, draws, math.exp(-exponent)).pvalue > FALSE_ALARM
    assert noise.bernoulli_exp(np.array([0.0, math.inf])[:1]).tolist() == [True]
    counts = np.bincount(noise.integers(6, draws), minlength=6)
    assert scipy.stats.chisquare(counts).pvalue > FALSE_ALARM
    assert sorted(noise.permutation(50).tolist()) == list(range(50))
    firsts = np.bincount([int(noise.permutation(3)[0]) for _ in range(600)], minlength=3)
    assert scipy.stats.chisquare(firsts).pvalue > FALSE_ALARM
    for wrong in (-0.1, 1.1, math.nan):
        with pytest.raises(ValueError, match="probability"):
            noise.bernoulli(wrong, 1)


def test_a_first_caller_waits_for_no_learning_library_nor_for_what_only_tight_composition_needs() -> None:
    code = """
import sys
import numpy as np
import compliance.ledger.accountant
from compliance.noise.sampling import System
for draw in (System().laplace, System().gaussian):
    draw(np.zeros(3), 1.0, 2.0**-40)
sys.exit(bool({"sklearn", "scipy", "pandas", "dp_accounting"} & sys.modules.keys()))
"""
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=300).returncode == 0


def test_seeded_noise_replays() -> None:
    def drawn(seed: int) -> list[float]:
        noise = Seeded(np.random.default_rng(seed))
        values = np.zeros(3)
        return [*noise.laplace(values, 1.0, STEP), *noise.gaussian(values, 1.0, STEP), *noise.cauchy(values, 1.0, STEP)]

    assert drawn(3) == drawn(3) != drawn(4)


# --- Mironov (CCS 2012): what can be released must not depend on the secret


def _naive(noise: np.random.Generator) -> Callable[[NDArray[np.float64], float, float], NDArray[np.float64]]:
    """Broken twin: real-valued noise, added in float64."""
    return lambda values, scale, _: values + noise.laplace(0.0, scale, values.size)


def _lattice(release: Callable[..., NDArray[np.float64]], secret: float) -> bool:
    """Whether everything released about a secret lies on the one grid that both neighbours share."""
    return on_grid(release(np.full(500, secret), 0.5, STEP), STEP)


def test_neighbours_share_their_output_grid() -> None:
    for noise in (SEEDED, SYSTEM):
        # 1/3 and 4/10 - 1/7: neighbours' gaps, in no common binary fraction.
        for law in ("laplace", "gaussian", "cauchy"):
            assert all(_lattice(getattr(noise, law), secret) for secret in (1 / 3, 4 / 10 - 1 / 7))


def test_the_naive_twin_is_caught() -> None:
    naive = _naive(np.random.default_rng(1))
    assert not any(_lattice(naive, secret) for secret in (1 / 3, 4 / 10 - 1 / 7))


def test_the_naive_twin_tells_neighbours_apart() -> None:
    # What the test above is for. The sum secret + x keeps no bits below the secret's own: around 0 an answer that is no
    # multiple of 2^-54 cannot come from 1/3 (between 1/4 and 1/2), but does come from a secret of 0.
    generator = np.random.default_rng(1)
    near = 2.0**-8

    def fine(secret: float) -> int:
        answers = _naive(generator)(np.full(20_000, secret), 0.5, STEP)
        small = answers[np.abs(answers) < near]
        assert len(small) > 50
        return sum(not (answer * 2.0**54).is_integer() for answer in small.tolist())

    assert fine(0.0) > 0
    assert fine(1 / 3) == 0


def test_steps() -> None:
    assert step_for(1.0, 20, 1.0) == 2.0**-20
    assert step_for(0.9, 20, 1.0) == 2.0**-21
    assert step_for(3.0, 30, 1.0) == 2.0**-29
    for scale, magnitude, step in ((0.0, 1.0, 2.0**-44), (1e-30, 1.0, 2.0**-44), (1e-30, 1000.0, 2.0**-34)):
        assert step_for(scale, 20, magnitude) == step


def test_a_step_needs_a_scale() -> None:
    for scale in (-1.0, math.inf, math.nan):
        with pytest.raises(ValueError, match="scale"):
            step_for(scale)


def test_keyed_bits_are_those_of_the_published_stream() -> None:
    """RFC 8439, A.1, test vector 1: the key stream of ChaCha20 under the key of zeros, from block 0 on."""
    first = bytes.fromhex("76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7")
    assert KeyedBits(bytes(32)).randbytes(32) == first
    whole = KeyedBits(bytes(32)).randbytes(5000)
    by_parts = KeyedBits(bytes(32))
    assert b"".join(by_parts.randbytes(size) for size in (1, 7, 300, 0, 4692)) == whole
    bits = KeyedBits(bytes(32))
    assert (bits.getrandbits(8), bits.getrandbits(3)) == (0x76, 0xB8 >> 5)


def test_noise_of_a_key_is_that_of_the_key() -> None:
    def drawn(key: int) -> list[Any]:
        noise, values = System(KeyedBits(key.to_bytes(32, "big"))), np.linspace(0, 1, 4)
        return [
            noise.laplace(values, 1.0, STEP).tolist(),
            noise.cube(values, 1.0, STEP).tolist(),
            noise.cauchy(values, 1.0, STEP).tolist(),
            noise.bernoulli(0.3, 9).tolist(),
            noise.bernoulli_exp(values).tolist(),
            noise.integers(1000, 5).tolist(),
            noise.permutation(9).tolist(),
        ]

    assert drawn(1) == drawn(1)
    assert all(one != other for one, other in zip(drawn(1)[:3], drawn(2)[:3], strict=True))
