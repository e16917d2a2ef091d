"""Sanitised values follow the public laws.

Every chi-square test here has a false-alarm rate of 1e-6, and a fixed seed.
"""

import math

import numpy as np
import pytest
import scipy.stats
from numpy.typing import NDArray

from compliance.mechanisms.local_protocols import PROTOCOLS, codes, seeded, system
from compliance.noise.uniform_bits import Draw, bernoulli
from fairwall.laws.local import LOCAL_LAWS, LocalPrivacyError, split

FALSE_ALARM = 1e-6
N = 20_000
WORLDS = [(2, 3.0), (3, 1.0), (4, 0.1)]
OF_ANY_DOMAIN = [name for name, law in LOCAL_LAWS.items() if law.domain is None]


def draws(number: int = 0) -> Draw:
    return seeded(bytes([number]) * 32)


def cells(name: str, encoded: NDArray[np.float64]) -> NDArray[np.float64]:
    """Numbers as the points that stand for their cells in the law's list of outputs."""
    if name != "the-server":
        return encoded
    return np.select([encoded <= 0, encoded <= 1], [-1.0, 0.5], 2.0)


def fits(outputs: NDArray[np.float64], expected: NDArray[np.float64], drawn: NDArray[np.float64]) -> bool:
    """Chi-square test of drawn rows; outputs of which less than 5 are expected count as one."""
    code = 7.0 ** np.arange(outputs.shape[1])  # an entry is one of seven: a multiple of 1/2 from -1 to 2
    order = np.argsort(outputs @ code)
    place = order[np.searchsorted(outputs @ code, drawn @ code, sorter=order).clip(max=len(outputs) - 1)]
    assert np.array_equal(outputs[place], drawn)
    counts = np.bincount(place, minlength=len(outputs))
    rare = expected * len(drawn) < 5
    observed = np.append(counts[~rare], counts[rare].sum())
    theory = np.append(expected[~rare], expected[rare].sum()) * len(drawn)
    if theory[-1] < 5:
        observed, theory = observed[:-1], theory[:-1]
        theory *= observed.sum() / theory.sum()
    return float(scipy.stats.chisquare(observed, theory).pvalue) > FALSE_ALARM


@pytest.mark.few(5)
@pytest.mark.parametrize(
    ("name", "k", "epsilon"),
    [
        pytest.param(name, *world, marks=pytest.mark.slow if world == WORLDS[2] else ())
        for world in WORLDS
        for name in PROTOCOLS
        if LOCAL_LAWS[name].domain in (None, world[0])
    ],
)
def test_encodings_follow_the_law(name: str, k: int, epsilon: float) -> None:
    law = LOCAL_LAWS[name].law(k, epsilon)
    outputs, probabilities = law.probabilities()
    values = np.random.default_rng(0).permutation(np.repeat(np.arange(k), N))
    encoded = PROTOCOLS[name].sanitise(values, k, epsilon, draws())
    assert encoded.shape == (k * N, k)
    assert encoded.dtype == (np.float64 if name == "the-server" else np.uint8)
    drawn = cells(name, encoded)
    for value in range(k):
        assert fits(outputs, probabilities[:, value], drawn[values == value])
        # What follows another value's law, or another epsilon's, is found out.
        assert not fits(outputs, probabilities[:, value - 1], drawn[values == value]) or epsilon < 0.2
    other = LOCAL_LAWS[name].law(k, epsilon + 0.3).probabilities()[1]
    if not np.allclose(other, probabilities, atol=0.01):
        moved = np.abs(other - probabilities).max(axis=0).argmax()
        assert not fits(outputs, other[:, moved], drawn[values == moved])
    rate = 1 - law.consistent(encoded).mean()
    spread = math.sqrt(law.inconsistent * (1 - law.inconsistent) / len(encoded))
    assert abs(rate - law.inconsistent) <= 4.9 * spread + 1e-12  # false alarms: 1e-6


def test_people_are_sanitised_independently() -> None:
    """Neighbouring rows, of which blocks are cut: the pairs of outputs have the product law."""
    for name in PROTOCOLS:
        law = LOCAL_LAWS[name].law(2, 1.0)
        outputs, probabilities = law.probabilities()
        drawn = cells(name, PROTOCOLS[name].sanitise(np.zeros(4 * N, np.int64), 2, 1.0, draws(1)))
        pairs = np.hstack([drawn[0::2], drawn[1::2]])
        both = np.array([[*first, *second] for first in outputs for second in outputs])
        assert fits(both, np.outer(probabilities[:, 0], probabilities[:, 0]).ravel(), pairs)


def test_large_unequal_domains() -> None:
    for name in OF_ANY_DOMAIN:
        domains = (2, 5, 41, 74)
        generator = np.random.default_rng(3)
        for k, epsilon in zip(domains, split("k-based", domains, 20.0), strict=True):
            values = generator.integers(k, size=5000).astype(np.int32)
            law = LOCAL_LAWS[name].law(k, epsilon)
            encoded = PROTOCOLS[name].sanitise(values, k, epsilon, draws(k))
            bits = law.thresholded(encoded) if name == "the-server" else encoded
            if law.kind == "subset":
                assert (bits.sum(axis=1) == law.size).all()
                extra = (law.size - 1 + law.missing) / (k - 1)
            else:
                extra = law.bits.extra if law.kind == "numbers" else law.extra
            missing = law.bits.missing if law.kind == "numbers" else law.missing
            own = bits[np.arange(5000), values]
            assert abs(own.sum() - 5000 * (1 - missing)) < 4.9 * math.sqrt(5000 * missing * (1 - missing)) + 1e-6
            # Each other value, by how many places further on it is. A subset's are negatively correlated, which helps.
            others = np.take_along_axis(bits, (values[:, None] + np.arange(1, k)) % k, axis=1).sum(axis=0)
            off = ((others - 5000 * extra) ** 2).sum() / (5000 * extra * (1 - extra))
            assert scipy.stats.chi2.sf(off, k - 1) > FALSE_ALARM


def test_the_same_seed_gives_the_same_release() -> None:
    for name in OF_ANY_DOMAIN:
        values = np.arange(3000) % 41
        first, again, other = (PROTOCOLS[name].sanitise(values, 41, 1.0, draws(number)) for number in (5, 5, 6))
        assert (first == again).all()
        assert (first != other).any()
        assert PROTOCOLS[name].sanitise(values[:0], 41, 1.0, draws()).shape == (0, 41)


def test_codes_are_the_encodings() -> None:
    values = np.arange(3000) % 41
    sanitised = codes(values, 41, 1.0, draws())
    assert (np.eye(41, dtype=np.uint8)[sanitised] == PROTOCOLS["grr"].sanitise(values, 41, 1.0, draws())).all()


def test_system_draws_are_uniform_on_the_grid() -> None:
    drawn = system()(100_000)
    assert (drawn * 2**53 % 1 == 0).all()
    assert scipy.stats.kstest(drawn, "uniform").pvalue > FALSE_ALARM
    encoded = PROTOCOLS["oue"].sanitise(np.zeros(10, np.int64), 5, 1.0, system())
    assert encoded.shape == (10, 5)


def test_bernoulli_is_exact() -> None:
    """Played through: each tie hands on to the next number, so P(True) is a sum over where the ties end."""
    for probability in (0.0, 2.0**-60, 2.0**-1000, 0.3, 0.5, 1 - 2.0**-53, 1.0, 0.1 * 2.0**-50):
        queue: list[float] = []

        def scripted(size: int, queue: list[float] = queue) -> NDArray[np.float64]:
            return np.array([queue.pop(0) for _ in range(size)])

        total, weight, digits = 0.0, 1.0, list[float]()
        for _ in range(25):
            # The number that ties with what is left of the probability.
            left = math.ldexp(probability, 53 * len(digits)) - sum(
                math.ldexp(digit, 53 * (len(digits) - i)) for i, digit in enumerate(digits)
            )
            digit = math.floor(math.ldexp(left, 53)) * 2.0**-53
            total += weight * digit
            weight *= 2.0**-53
            for uniform in {digit - 2.0**-53, digit + 2.0**-53}:
                if 0 <= uniform < 1:
                    queue[:] = [*digits, uniform]
                    assert bernoulli(probability, 1, scripted)[0] == (uniform < digit)
            digits.append(digit)
            if math.ldexp(left, 53) % 1 == 0:
                break
        assert total == probability


def test_numbers_lie_on_a_grid_and_reach_far() -> None:
    encoded = PROTOCOLS["the-server"].sanitise(np.zeros(N, np.int64), 2, 1.0, draws())
    assert (encoded * 2**20 % 1 == 0).all()
    noise = encoded - [1.0, 0.0]
    assert scipy.stats.kstest(noise.ravel(), scipy.stats.laplace(scale=2).cdf).pvalue > FALSE_ALARM


def test_bad_input() -> None:
    for name in OF_ANY_DOMAIN:
        values = np.array([0, 1, 2])
        for bad, k, epsilon, said in (
            (values, 2, 1.0, "must be in their domain, 0 .. 1"),
            (-values, 3, 1.0, "must be in their domain, 0 .. 2"),
            (values * 1.0, 3, 1.0, "one row of integers"),
            (values[:, None], 3, 1.0, "one row of integers"),
            (values * 0, 1, 1.0, "domain of at least 2 values"),
            (values, 3, 0.0, "epsilon must be above 0"),
            (values, 3, math.nan, "epsilon must be above 0"),
        ):
            with pytest.raises(LocalPrivacyError, match=said):
                PROTOCOLS[name].sanitise(bad, k, epsilon, draws())
        with pytest.raises(LocalPrivacyError, match="in their domain"):
            codes(values, 2, 1.0, draws())


def test_a_seed_has_32_bytes() -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        seeded(b"short")
