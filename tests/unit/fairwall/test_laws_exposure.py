"""What a batch gives away at most, held against attacks that are played."""

import math
from dataclasses import replace

import numpy as np
import pytest

from developer.reveal.decode import ep, score
from developer.reveal.decode.decoder import DecoderInputs
from fairwall.laws.choice.cell_partition import cells_scale
from fairwall.laws.metrics.group_size_range import Shares
from fairwall.laws.noise.count_noise import laplace_scales
from fairwall.laws.noise.distributions import Laplace
from fairwall.laws.noise.linf_ball import CubeNoise, cube_scales
from fairwall.laws.privacy.exposure import (
    NO_LIMIT,
    REVEAL_MAX,
    Limit,
    cells_within,
    in_words,
    one_person,
    revealed,
    within,
)
from fairwall.laws.privacy.single_person_tests import (
    SinglePersonTest,
    found_out,
    look_at_cube,
    scaled,
    small,
    told_apart,
)

TENTH = Shares(0.1, 0.1)


def played(mechanism: str, n: int, n0: int, queries: int, epsilon: float, trials: int) -> tuple[float, float]:
    """Play an attack with random halves, N0 known: the better of two decoders' mean accuracy, and its deviation."""
    rng = np.random.default_rng(7)
    c, found = 1 / n0 + 1 / (n - n0), []
    for _ in range(trials):
        z = rng.permutation(np.arange(n) < n0)
        rows = (np.argsort(rng.random((queries, n)), axis=1) < n // 2).astype(float)
        if mechanism == "counts":
            law: Laplace | CubeNoise = Laplace(laplace_scales(queries, epsilon).sums)
            error = law.sample(rng, queries)
        else:
            scales = cube_scales(queries, epsilon)
            law = replace(scales.law, scale=scales.scale / 2)
            size = float(law.draw_sizes(rng, 1)[0])
            error = rng.uniform(-size, size, queries)
        noise = replace(law, scale=law.scale * c)
        evidence = DecoderInputs(rows, -c * ((rows - 0.5) @ z + error), n0, n - n0, noise, None, rng)
        guesses = [1 / (n - n0) - decode(evidence) > c / 2 for decode in (ep.decode, score.decode)]
        found.append([(guess[z].mean() + (~guess[~z]).mean()) / 2 for guess in guesses])
    best = np.array(found)[:, int(np.argmax(np.mean(found, axis=0)))]
    return float(best.mean()), float(best.std() / math.sqrt(trials))


@pytest.mark.parametrize(
    ("mechanism", "n", "queries", "epsilon"),
    [("counts", 100, 2, 1.0), pytest.param("cube", 100, 4, 1.0, marks=pytest.mark.check)],
)
def test_attacks_that_are_played_reveal_as_much(mechanism: str, n: int, queries: int, epsilon: float) -> None:
    found, deviation = played(mechanism, n, n // 10, queries, epsilon, 300)
    told = revealed(mechanism, "sp", n, queries, epsilon, shares=TENTH, different=queries)
    # False alarms: one in 10,000; one point is what independent rows leave out.
    assert abs(found - told) < 0.01 + 4 * deviation


@pytest.mark.check
def test_where_everybody_is_found_that_is_said() -> None:
    """Plays of `best` at epsilon 100 know everybody, or nearly (docs/attacks.md): what is found out helps on."""
    assert revealed("cube", "sp", 100, 40, 100.0, shares=TENTH) > 0.99


@pytest.mark.check
def test_noise_of_another_epsilon_is_found_out() -> None:
    """The broken twin: noise for twice the epsilon reveals more than is told of epsilon."""
    found, deviation = played("counts", 100, 10, 10, 10.0, 300)
    assert found - revealed("counts", "sp", 100, 10, 5.0, shares=TENTH) > 0.01 + 4 * deviation


def test_one_exact_row_reveals_what_counting_says() -> None:
    # Of N0 = 2 among 4 people with two in the row: one in each half (4 of 6 cases) tells nothing, else all is told.
    with_one, without = np.array([0.0, 2 / 3, 1 / 3]), np.array([1 / 3, 2 / 3, 0.0])
    assert told_apart([SinglePersonTest(with_one, without, 1)]) == pytest.approx(1 / 2 + 1 / 6)


@pytest.mark.parametrize("rows", [1, 7])
def test_many_looks_tell_hypotheses_apart_as_a_binomial_does(rows: int) -> None:
    one, zero = np.array([0.3, 0.7]), np.array([0.6, 0.4])
    heads = np.arange(rows + 1)
    choose = np.array([math.comb(rows, int(k)) for k in heads])
    apart = np.abs(choose * (0.7**heads * 0.3 ** (rows - heads) - 0.4**heads * 0.6 ** (rows - heads))).sum()
    assert told_apart([SinglePersonTest(one, zero, rows)]) == pytest.approx(0.5 + apart / 4, abs=2e-3)


def test_many_weak_looks_add_up_as_gaussian_ones() -> None:
    x = np.linspace(-8, 8, 4001)
    one, zero = (np.exp(-((x - centre) ** 2) / 2) for centre in (0.05, -0.05))
    expected = 0.5 * (1 + math.erf(0.1 * math.sqrt(50) / 2 / math.sqrt(2)))
    assert told_apart([SinglePersonTest(one, zero, 50)]) == pytest.approx(expected, abs=1e-3)


def test_cells_reveal_what_their_noisy_counts_do() -> None:
    """Every person of a cell is guessed by the cell's noisy count, among cells that add up to a known N0."""
    rng, n, n0, cells, epsilon, found = np.random.default_rng(3), 100, 10, 10, 1.0, []
    scale = cells_scale(epsilon)
    for _ in range(3000):
        z = rng.permutation(np.arange(n) < n0).reshape(cells, -1)
        keep = -math.expm1(-1 / scale)
        noise = rng.geometric(keep, cells) - rng.geometric(keep, cells)
        told = z.sum(axis=1) + noise
        guess = np.broadcast_to((told - (told.sum() - n0) / cells > n0 / cells)[:, np.newaxis], z.shape)
        found.append((guess[z].mean() + (~guess[~z]).mean()) / 2)
    told_of_all = revealed("cells", "sp", n, 1, epsilon, shares=TENTH)
    assert np.mean(found) <= told_of_all + 4 * np.std(found) / math.sqrt(len(found))
    assert np.mean(found) == pytest.approx(told_of_all, abs=0.02)


def test_randomised_response_tells_what_it_promises() -> None:
    for epsilon in (0.1, 1.0, 5.0):
        assert revealed("randomized-response", "sp", 1000, 25, epsilon) == 1 / (1 + math.exp(-epsilon))


@pytest.mark.check
def test_nothing_reveals_more_than_is_promised_about_one_person() -> None:
    for mechanism in ("counts", "laplace", "cauchy", "cube", "low-rank", "cells"):
        for n in (3, 40):
            for epsilon in (0.4, 3.0):
                assert 0.5 <= revealed(mechanism, "sp", n, 3, epsilon) <= one_person(epsilon)


def test_a_smaller_group_is_given_away_more() -> None:
    for mechanism in ("counts", "cube", "cells"):
        least, most = (revealed(mechanism, "sp", 200, 8, 3.0, shares=Shares(p, p)) for p in (0.5, 0.05))
        assert least < most
    # The advantaged may be the few.
    few, many = (revealed("counts", "sp", 200, 8, 3.0, shares=Shares(p, p)) for p in (0.05, 0.95))
    assert few == many


def test_large_data_sets_reveal_what_ones_of_their_kind_do() -> None:
    # As many times the people as models; the noise of a cube grows with the models, but for few of them.
    one, four = (revealed("counts-gaussian", "sp", 2000 * k, 40 * k, 3.0, 1e-5, TENTH) for k in (1, 4))
    assert four == pytest.approx(one, abs=0.01)


def test_as_many_cells_as_stay_within_the_limit() -> None:
    limit = Limit(REVEAL_MAX)
    # Below ln(3/2) / 2 nothing tells more, and up to twice of that cells of ten people do not.
    assert cells_within(1000, 0.2, limit) == 1000
    assert cells_within(1000, 0.4, limit) == 100
    assert cells_within(1000, 5.0, NO_LIMIT) == 1000
    for n in (100, 1000):
        most = [cells_within(n, epsilon, limit) for epsilon in (1.0, 2.0, 5.0)]
        assert all(1 <= cells < n // 10 for cells in most)
        assert most == sorted(most, reverse=True)


def test_who_stays_within_the_limit() -> None:
    names = ["randomized-response", "counts", "laplace"]
    assert within(names, "sp", 1000, 5, 0.4, 0.0, Limit(REVEAL_MAX)) == names
    assert within(names, "sp", 1000, 5, 0.41, 0.0, Limit(REVEAL_MAX)) == names[1:]
    assert within(names, "sp", 1000, 5, 0.41, 0.0, NO_LIMIT) == names
    # Nothing stays below: what reveals least.
    least = min(names, key=lambda name: revealed(name, "sp", 20, 1, 5.0))
    assert within(names, "sp", 20, 1, 5.0, 0.0, Limit(0.55)) == [least]


def test_in_words() -> None:
    assert in_words(0.6, 1.0, fewest=20) == (
        "Whoever spends this whole batch on finding out who is who, by the best attack known here, has a balanced "
        "accuracy of at most 60%, the mean of the shares of both groups that are named right, where both have at least "
        "20 people; guessing gives 50%, and several batches tell more. About one person aimed at, the limit of one "
        "batch is e^(2 eps)/(1+e^(2 eps)), 88.1% at epsilon 1."
    )
    assert "that are named right, however small a group is; guessing" in in_words(0.6, 1.0)


@pytest.mark.parametrize(
    ("models", "common", "epsilon", "part"),
    [(5, 1, 0.5, 0.25), pytest.param(25, 8, 8.0, 0.5, marks=pytest.mark.check)],
)
def test_two_cubes_tell_no_more_than_is_reckoned(models: int, common: int, epsilon: float, part: float) -> None:
    """As looks at both, whatever part of epsilon either has; a hundredth is the error of a fixed point."""
    for n, n0 in ((200, 5), (200, 60), (1000, 20)):
        laws = [
            (CubeNoise(1 / ((1 - part) * epsilon), common + 1), common),
            (CubeNoise(1 / (part * epsilon), models), models),
        ]

        def told(n: int, n0: int, laws: list[tuple[CubeNoise, int]] = laws) -> float:
            looks = []
            for law, rows in laws:
                less, few, of_them, smaller = small(scaled(law, 0.5), n, n0)
                assert isinstance(less, CubeNoise)
                looks.append(look_at_cube(less, few, of_them, max(1, round(rows / smaller))))
            return told_apart(looks)

        of_both = min(found_out(told, n, n0), one_person(epsilon))
        assert of_both <= revealed("low-rank", "sp", n, models, epsilon, shares=Shares(n0 / n, n0 / n)) + 0.01
