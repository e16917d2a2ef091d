"""The mechanisms that compliance can answer with, by name."""

from compliance.mechanisms.cauchy import CauchyMechanism
from compliance.mechanisms.cells import CellsMechanism
from compliance.mechanisms.conceal import Conceal
from compliance.mechanisms.conceal_laplace import ConcealLaplace
from compliance.mechanisms.counts import CountsMechanism
from compliance.mechanisms.counts_gaussian import CountsGaussian
from compliance.mechanisms.cube import CubeMechanism
from compliance.mechanisms.exact import Exact
from compliance.mechanisms.exponential import ExponentialMechanism
from compliance.mechanisms.gaussian import GaussianMechanism
from compliance.mechanisms.laplace import LaplaceMechanism
from compliance.mechanisms.low_rank import LowRankMechanism
from compliance.mechanisms.mechanism import Mechanism
from compliance.mechanisms.not_proved import of_others
from compliance.mechanisms.pass_fail import PassFail
from compliance.mechanisms.propose_test_release import ProposeTestRelease
from compliance.mechanisms.randomized_response import RandomizedResponse
from compliance.mechanisms.recommended import Recommended
from compliance.mechanisms.round import Round
from compliance.mechanisms.sample_and_aggregate import SampleAndAggregate
from compliance.mechanisms.sparse_vector import SparseVectorMechanism
from fairwall.errors import UserError
from fairwall.laws.mechanisms import MECHANISM_LAWS
from fairwall.plugins import Registry

__all__ = ["MECHANISMS", "Mechanism", "MechanismError", "find_mechanism"]

_ALL: tuple[Mechanism, ...] = (
    Exact(),
    Round(),
    PassFail(),
    LaplaceMechanism(),
    GaussianMechanism(),
    Conceal(),
    ConcealLaplace(),
    CauchyMechanism(),
    CountsMechanism(),
    CountsGaussian(),
    CubeMechanism(),
    LowRankMechanism(),
    CellsMechanism(),
    RandomizedResponse(),
    SparseVectorMechanism(),
    ExponentialMechanism(),
    SampleAndAggregate(),
    ProposeTestRelease(),
    Recommended(),
)

MECHANISMS: Registry[Mechanism] = Registry("mechanisms", {mechanism.name: mechanism for mechanism in _ALL}, of_others)
"""Every mechanism by its name."""


class MechanismError(UserError):
    """A mechanism without a row of public facts. Its text is one line that says what to add, and where."""


def find_mechanism(name: str) -> Mechanism:
    """Return the mechanism of this name.

    KeyError for a name that is not in `MECHANISMS`; MechanismError if it has no row in `MECHANISM_LAWS`.
    """
    mechanism = MECHANISMS[name]
    if mechanism.name not in MECHANISM_LAWS:
        raise MechanismError(
            f"mechanism {name}: missing is its row in MECHANISM_LAWS (proto/fairwall/laws/mechanisms.py)"
        )
    return mechanism


for _name in MECHANISMS:
    find_mechanism(_name)
