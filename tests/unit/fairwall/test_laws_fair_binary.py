"""The fairest release of two values: what its statement says, where it holds and where it does not, by brute force."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from fairwall.laws.local import LOCAL_LAWS, Flips, LocalPrivacyError, enumerated_loss

FAIREST = ("fair-0", "fair-1")

Joint = NDArray[np.float64]
"""P(A, Y), shape (2, 2)."""

Measure = Callable[[Joint, NDArray[np.float64]], NDArray[np.float64]]
"""From a joint law and channels, shape (..., 2, 2), to their unfairness."""


def joints() -> list[Joint]:
    """Joint laws of the value and the label: all shares and rates on a grid, and uniformly drawn ones."""
    grid = [
        np.array([[s * (1 - a), s * a], [(1 - s) * (1 - b), (1 - s) * b]])
        for s in (0.01, 0.06, 0.3, 0.5, 0.7, 0.99)
        for a in (0.0, 0.2, 0.9)
        for b in (0.1, 0.5, 1.0)
    ]
    return [*grid, *np.random.default_rng(1).dirichlet(np.ones(4), 30).reshape(30, 2, 2)]


def channels(p: NDArray[np.float64], q: NDArray[np.float64]) -> NDArray[np.float64]:
    """P(Z | A), shape (n, Z, A), for 0 kept with probability p and 1 with q, shape (n,)."""
    return np.array([[p, 1 - q], [1 - p, q]]).transpose(2, 0, 1)


def unfairness(joint: Joint, channel: NDArray[np.float64]) -> NDArray[np.float64]:
    """|P(Y=1 | Z=1) - P(Y=1 | Z=0)|, from the joint law of Z and Y itself."""
    released = channel @ joint
    rates = released[..., 1] / released.sum(axis=-1)
    distance: NDArray[np.float64] = np.abs(rates[..., 1] - rates[..., 0])
    return distance


def relative(joint: Joint, channel: NDArray[np.float64]) -> NDArray[np.float64]:
    """max |P(Y=1 | Z=z) - P(Y=1)| / P(Y=1): what the authors' program minimises for more than two values."""
    released = channel @ joint
    rates = released[..., 1] / released.sum(axis=-1)
    furthest: NDArray[np.float64] = np.abs(rates / joint[:, 1].sum() - 1).max(axis=-1)
    return furthest


def losses(channel: NDArray[np.float64]) -> NDArray[np.float64]:
    """The largest log-ratio of a row's entries."""
    logs = np.log(channel)
    loss: NDArray[np.float64] = np.abs(logs[..., 0] - logs[..., 1]).max(axis=-1)
    return loss


def fairest(joint: Joint, epsilon: float) -> NDArray[np.float64]:
    """The protocol that knows which value is rarer."""
    rarer = int(joint.sum(axis=1).argmin())
    law = LOCAL_LAWS[FAIREST[rarer]].law(2, epsilon)
    probabilities: NDArray[np.float64] = law.probabilities()[1]
    return probabilities


GRID = np.linspace(0, 1, 101)[1:-1]
P, Q = (side.ravel() for side in np.meshgrid(GRID, GRID))


def test_it_costs_epsilon_exactly() -> None:
    for name in FAIREST:
        for epsilon in (0.05, 4.0, 1e-6, 700.0):
            law = LOCAL_LAWS[name].law(2, epsilon)
            outputs, probabilities = law.probabilities()
            assert outputs.tolist() == [[1, 0], [0, 1]]
            np.testing.assert_allclose(probabilities.sum(axis=0), 1, rtol=0, atol=1e-15)
            assert enumerated_loss(probabilities) == pytest.approx(epsilon, rel=1e-6 if epsilon > 1e-3 else 1e-4)
            assert LOCAL_LAWS[name].loss(2, epsilon) == epsilon
            assert law.consistent(outputs).all()
            np.testing.assert_allclose(law.log_likelihood(outputs), np.log(probabilities), rtol=0, atol=1e-9)
            # It is the paper's: the rarer value kept with 1 - e^-epsilon / 2, the other one with 1/2.
            rarer = FAIREST.index(name)
            assert probabilities[rarer, rarer] == pytest.approx(1 - math.exp(-epsilon) / 2, rel=1e-12)
            assert probabilities[1 - rarer, 1 - rarer] == pytest.approx(0.5, rel=1e-12)


def beaten(
    joint: Joint,
    least: float,
    epsilon: float,
    measure: Measure = unfairness,
    *,
    truthful: bool = True,
    at_most: bool = False,
) -> bool:
    """Whether some channel of the class has less unfairness: all on the curves of loss epsilon, and all on a grid."""
    kept = np.linspace(0, 1, 1001)[1:-1]
    odds = math.exp(epsilon)
    for p, q in ((kept, 1 - kept / odds), (1 - kept / odds, kept), (P, Q)):
        channel = channels(p, q)
        cost = losses(channel)
        allowed = cost <= epsilon + 1e-9 if at_most else cost >= epsilon - 1e-9
        if truthful:
            allowed &= (p >= 0.5) & (q >= 0.5)
        if (measure(joint, channel)[allowed] < least - 1e-12).any():
            return True
    return False


@pytest.mark.parametrize("epsilon", [0.5, pytest.param(4.0, marks=pytest.mark.check)])
def test_no_truthful_channel_that_costs_epsilon_or_more_is_fairer(epsilon: float) -> None:
    for joint in joints()[::2]:
        for measure in (unfairness, relative):
            least = float(measure(joint, fairest(joint, epsilon)))
            assert not beaten(joint, least, epsilon, measure)


@pytest.mark.parametrize("epsilon", [0.05, 4.0])
def test_the_statement_needs_both_conditions(epsilon: float) -> None:
    """A fair coin is fairer and costs at most epsilon; so is a channel that keeps a value with less than 1/2."""
    joint = np.array([[0.2, 0.1], [0.1, 0.6]])
    least = float(unfairness(joint, fairest(joint, epsilon)))
    coin = channels(np.array([0.5]), np.array([0.5]))
    assert unfairness(joint, coin) == pytest.approx(0, abs=1e-15) != least
    assert losses(coin) == 0
    assert beaten(joint, least, epsilon, at_most=True)
    assert beaten(joint, least, epsilon, truthful=False)


def test_brute_force_catches_another_corner_and_grr() -> None:
    for joint in joints():
        first, second = np.sort(joint.sum(axis=1))
        if second - first < 0.1 or unfairness(joint, np.eye(2)) < 0.05:
            continue
        wrong = fairest(joint[::-1], 1.0)
        grr = LOCAL_LAWS["grr"].law(2, 1.0).probabilities()[1]
        for law in (wrong, grr):
            assert beaten(joint, float(unfairness(joint, law)), 1.0)


@pytest.mark.parametrize("epsilon", [0.05, 4.0])
def test_it_is_the_release_of_grr_processed_further(epsilon: float) -> None:
    """GRR's commoner value becomes the rarer one with probability (1 - e^-epsilon) / 2, and nothing else is needed."""
    outputs, grr = LOCAL_LAWS["grr"].law(2, epsilon).probabilities()
    by_value = grr[np.argsort(outputs[:, 1])]
    turned = (1 - math.exp(-epsilon)) / 2
    further = np.array([[1, turned], [0, 1 - turned]])
    np.testing.assert_allclose(further @ by_value, LOCAL_LAWS["fair-0"].law(2, epsilon).probabilities()[1])
    # So it tells less: the two values' laws are never further apart than 1/2.
    kept = LOCAL_LAWS["fair-0"].law(2, epsilon).probabilities()[1]
    assert abs(kept[0, 0] - kept[0, 1]) == pytest.approx(turned)
    assert turned < abs(by_value[0, 0] - by_value[0, 1])


@pytest.mark.parametrize("name", FAIREST)
def test_bad_laws(name: str) -> None:
    for k, epsilon, said in (
        (1, 1.0, "domain of at least 2 values, this one has 1"),
        (3, 1.0, f"{name} is for an attribute of 2 values, this one has 3"),
        (2, 0.0, "epsilon must be above 0"),
        (2, math.inf, "epsilon must be above 0"),
    ):
        for what in (LOCAL_LAWS[name].law, LOCAL_LAWS[name].loss):
            with pytest.raises(LocalPrivacyError, match=said) as caught:
                what(k, epsilon)
            assert "\n" not in str(caught.value)


def test_a_law_that_is_not_the_fairest_costs_otherwise() -> None:
    assert enumerated_loss(Flips((math.exp(-1.0), 0.5)).probabilities()[1]) != pytest.approx(1.0, abs=1e-6)
