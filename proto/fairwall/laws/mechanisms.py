"""What is public of compliance's mechanisms, by name: the law of the noise that each adds, and its constants.

Mechanisms are public (Kerckhoffs): compliance answers by them, the developer's decoders weigh answers by them, and a
privacy audit computes losses from them. A mechanism that adds independent noise to each gap has a row in `LAWS`.
"""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from fairwall.laws.calibration import conceal_law, laplace_law
from fairwall.laws.cauchy import tuned_law
from fairwall.laws.conceal_laplace import conceal_laplace_law
from fairwall.laws.noise import Law

AddedNoise: TypeAlias = Callable[[str, int, int, int, float, float], Law]
"""From the metric, n0 and n1 of its stratum, the batch's models, epsilon and delta: the noise on each gap."""

LAWS: Mapping[str, AddedNoise] = {
    "laplace": lambda metric, n0, n1, m, epsilon, _delta: laplace_law(metric, n0 + n1, m, epsilon),
    "conceal": lambda metric, n0, n1, m, epsilon, _delta: conceal_law(metric, n0, n1, m, epsilon),
    "cauchy": lambda metric, n0, n1, m, epsilon, _delta: tuned_law(metric, n0, n1, m, epsilon),
    "conceal-laplace": conceal_laplace_law,
}
"""The noise on each gap, by the mechanism's name."""

ROUND_DECIMALS = 2
"""How many decimals `round` keeps."""

TEST_SHARE = 0.25
"""The part of epsilon that the test of `propose-test-release` spends."""

MINORITY_SHARE = 0.05
"""The least share of a stratum's smaller group that the noise of `propose-test-release` is made for."""
