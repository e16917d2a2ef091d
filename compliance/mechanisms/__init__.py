"""The mechanisms that compliance can answer with, by name."""

from compliance.mechanisms.cells import CellsMechanism
from compliance.mechanisms.counts import CountsGaussian, CountsMechanism
from compliance.mechanisms.cube import CubeMechanism, LowRankMechanism
from compliance.mechanisms.mechanism import Mechanism, of_others
from compliance.mechanisms.noise_on_gaps import (
    CauchyMechanism,
    Conceal,
    ConcealLaplace,
    Exact,
    GaussianMechanism,
    LaplaceMechanism,
    Round,
)
from compliance.mechanisms.propose_test_release import ProposeTestRelease
from compliance.mechanisms.randomized_response import RandomizedResponse
from compliance.mechanisms.recommended import Recommended
from compliance.mechanisms.sample_and_aggregate import SampleAndAggregate
from compliance.mechanisms.selection import ExponentialMechanism, PassFail, SparseVectorMechanism
from fairwall.errors import UserError
from fairwall.laws.mechanisms.table import MECHANISM_LAWS
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
            f"mechanism {name}: missing is its row in MECHANISM_LAWS (proto/fairwall/laws/mechanisms/table.py)"
        )
    return mechanism


for _name in MECHANISMS:
    find_mechanism(_name)
