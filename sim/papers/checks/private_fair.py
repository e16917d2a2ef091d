"""The theorems and the arithmetic of [SD]; `private_limits` has its formulas (13) to (31).

[SD]: Watson, "From Statistical Disclosure Control to Fair AI" (arXiv 2601.17909).
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import NDArray

from fairwall.arrays import Floats
from fairwall.laws.noise.gaussian import gaussian_delta, gaussian_epsilon
from sim.papers.finding import ROUNDING, CheckResult, to_rounding

_EPSILONS = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0)

TABLE = {
    "S-NN": (84.14, 0.131),
    "F-NN": (79.25, 0.057),
    "DP-NN": (84.03, 0.136),
    "DPF-NN": (82.98, 0.048),
}
"""Table I's networks: accuracy in percent and risk difference, as printed."""


def one_of_a_thousand() -> CheckResult:
    """Check Example 1: one of 1,000 patients changes a share in whole percent."""
    patients = 1000
    told = [(round(smokers / 10), round((smokers + 1) / 10)) for smokers in range(patients)]
    seen = sum(without != with_her for without, with_her in told)
    without, with_her = told[519]
    return CheckResult(
        f"one patient moves the share by 0.1 points; in {seen} of {patients:,} tables that changes a whole percentage",
        f"519 of 999 others smoke: {without}% is released whatever Alice's row says" if without == with_her else "",
        {"seen": seen},
    )


def alice_was_there() -> CheckResult:
    """Check Eq. (3): the release shows nearly surely that Alice, who smokes, was in the table; 52% of the others do."""
    from scipy.stats import binom

    patients, rate, smokes = 1000, 0.52, 0.99
    others = binom.pmf(range(patients), patients - 1, rate)
    said = np.array([round(100 * count / patients) for count in range(patients + 1)])

    def chance(percent: int, share: float) -> float:
        counts = np.convolve(others, [1 - share, share])
        return float(counts[said == percent].sum())

    inside, outside = chance(52, smokes), chance(52, rate)
    posterior = inside / (inside + outside)
    return CheckResult(
        "the release is about as likely with her as without her",
        f"who gave Alice's presence a chance of 1/2 gives it {posterior:.3f} after reading 52%",
        {"posterior": posterior},
    )


def something_to_tell() -> CheckResult:
    """Check Theorem 2: for every release that is not constant some side information identifies somebody only with it.

    Every function of three people's bits is tried. The side information is a secret bit, added modulo 2 to whether the
    release has some value: without the release the bit stays open, with the release it is known.
    """
    tables, least = 0, 1.0
    for values in itertools.product((0, 1), repeat=8):
        share = sum(values) / 8
        if 0 < share < 1:
            tables += 1
            # The secret is a fair coin; max(share, 1 - share) is the best guess from the side information alone.
            least = min(least, 1 - max(share, 1 - share))
    return CheckResult(
        f"in all {tables} releases of one bit; what the release adds to guessing the secret is {least:.3f} at least",
        "" if least > 0 else "a release that adds nothing",
        {"releases": tables, "least": least},
    )


def laplace() -> CheckResult:
    """Check Theorem 3: Laplace noise of scale sensitivity/epsilon is epsilon-DP."""
    places = np.linspace(-50, 50, 20_001)
    worst = max(
        float(np.abs(np.abs(places - shift) - np.abs(places)).max()) * epsilon - epsilon
        for epsilon, shift in itertools.product(_EPSILONS, (0.25, 0.5, 1.0))
    )
    found = "the log-ratio of densities is at most epsilon, and epsilon itself beyond either mean"
    return to_rounding(found, worst, "exceeds epsilon by", over=worst)


def composition() -> CheckResult:
    """Check Theorem 4: the losses of two mechanisms add up, in all pairs of 200 drawn ones with three outputs each."""
    rng = np.random.default_rng(4)
    drawn = rng.dirichlet(np.ones(3), size=(200, 2))
    losses = [_loss(law) for law in drawn]
    over, closest = -math.inf, math.inf
    for first, second in itertools.combinations(range(len(drawn)), 2):
        both = np.einsum("vi,vj->vij", drawn[first], drawn[second]).reshape(2, -1)
        left = losses[first] + losses[second] - _loss(both)
        over, closest = max(over, -left), min(closest, left)
    coins = [np.array([[rate, 1 - rate], [1 - rate, rate]]) for rate in (0.6, 0.8)]
    exact = _loss(np.einsum("vi,vj->vij", *coins).reshape(2, -1)) - sum(map(_loss, coins))
    return CheckResult(
        f"in 19,900 pairs never more than the sum; the sum itself for two randomised responses, to {abs(exact):.0e}",
        "" if over <= ROUNDING and abs(exact) < ROUNDING else f"exceeds the sum by {over:g}",
        {"pairs": 19_900},
    )


def gaussian() -> CheckResult:
    """Check III-C: sigma = sqrt(2 ln(1.25/delta)) sensitivity/epsilon gives (epsilon, delta)-DP."""
    over = {}
    for epsilon, delta in itertools.product((0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0), (1e-3, 1e-5, 1e-7)):
        multiplier = math.sqrt(2 * math.log(1.25 / delta)) / epsilon
        true = gaussian_delta(multiplier, epsilon)
        if true > delta * (1 + ROUNDING):
            over[epsilon, delta] = true
    if not over:
        return CheckResult("in 21 cases of epsilon up to 20")
    (epsilon, delta), true = min(over.items())
    multiplier = math.sqrt(2 * math.log(1.25 / delta)) / epsilon
    return CheckResult(
        f"holds in {21 - len(over)} of 21 cases, all of epsilon up to 1 among them",
        f"epsilon {epsilon:g}, delta {delta:g}: the true delta is {true:.2e}; epsilon would have to be "
        f"{gaussian_epsilon(multiplier, delta):.2f}",
        {"fails": len(over), "delta": true},
    )


def exponential_mechanism() -> CheckResult:
    """Check III-C: the exponential mechanism is epsilon-DP. Scores of three candidates that each move by at most 1."""
    worst, cases = -math.inf, 0
    for epsilon in _EPSILONS:
        for scores, moved in itertools.product(
            itertools.product(range(4), repeat=3), itertools.product((-1, 0, 1), repeat=3)
        ):
            here, there = (np.array(each, float) * epsilon / 2 for each in (scores, np.add(scores, moved)))
            worst = max(worst, float(np.abs(_log_chances(here) - _log_chances(there)).max()) - epsilon)
            cases += 1
    found = f"in {cases:,} cases the log-ratio is at most epsilon"
    return to_rounding(found, worst, "exceeds epsilon by", cases=cases)


def case_study_numbers() -> CheckResult:
    """Check (30), (31): 1/sqrt(5000) is 0.014, 1/sqrt(500) is 0.045, which is 3.2 times as much."""
    large, small = 1 / math.sqrt(5000), 1 / math.sqrt(500)
    right = (round(large, 3), round(small, 3), round(small / large, 1)) == (0.014, 0.045, 3.2)
    return CheckResult(
        f"{large:.4f}, {small:.4f}, {small / large:.2f} times",
        "" if right else "other numbers",
        {"ratio": small / large},
    )


def case_study_drops() -> CheckResult:
    """Check VI-D: .79 to .68 is 11 points and .82 to .77 is 5; a rate of .15 to .28 is 87% more."""
    drops, growth = ((79 - 68), (82 - 77)), 0.28 / 0.15 - 1
    right = drops == (11, 5) and round(100 * growth) == 87
    return CheckResult(
        f"{drops[0]} and {drops[1]} points, {growth:.1%}", "" if right else "other numbers", {"growth": growth}
    )


def most_utility_lost() -> CheckResult:
    """Check V-B: of Table I's networks the private and fair one has lost most accuracy."""
    least = min(TABLE, key=lambda name: TABLE[name][0])
    return CheckResult(
        f"{least} has lost most",
        "" if least == "DPF-NN" else f"DPF-NN has {TABLE['DPF-NN'][0]}%, {least} has {TABLE[least][0]}%",
        {"dpf": TABLE["DPF-NN"][0], "least": TABLE[least][0]},
    )


def always_a_price() -> CheckResult:
    """Check VI-C: of accuracy, fairness and privacy none improves unless another degrades. Table I's networks."""
    private, plain = TABLE["DPF-NN"], TABLE["F-NN"]
    better = private[0] > plain[0] and private[1] < plain[1]
    return CheckResult(
        "models that are not on the frontier improve in all three",
        f"DPF-NN is private and F-NN is not; it is right about {private[0]}% and not {plain[0]}%, at a risk difference "
        f"of {private[1]} and not {plain[1]}"
        if better
        else "",
        {"accuracy": private[0] - plain[0], "gap": private[1] - plain[1]},
    )


def thresholds_read_people() -> CheckResult:
    """Check VII-C: thresholds by group that are set after private training keep the training's guarantee.

    A private model's scores are public; thresholds that equalise the groups' rates on the private rows are not.
    """
    scores = np.array([0.1, 0.3, 0.5, 0.7, 0.2, 0.4, 0.6, 0.8])
    group = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    other = group.copy()
    other[3] = 1

    def threshold(members: NDArray[np.intp]) -> float:
        return float(np.median(scores[members == 0]))

    here, there = threshold(group), threshold(other)
    return CheckResult(
        "kept where thresholds are fitted on public rows, or on what was released before",
        f"eight people whose scores are public: the threshold of group 0 is {here:g}, and {there:g} if one of them is "
        "in the other group: it rules one of two neighbouring tables out"
        if here != there
        else "",
        {"here": here, "there": there},
    )


def _loss(law: Floats) -> float:
    return float(np.abs(np.log(law[0]) - np.log(law[1])).max())


def _log_chances(weights: Floats) -> Floats:
    return np.asarray(weights - np.log(np.exp(weights).sum()))
