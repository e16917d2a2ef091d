"""The mechanisms that compliance can answer with, by name."""

from compliance.mechanisms.conceal import Conceal
from compliance.mechanisms.exact import Exact
from compliance.mechanisms.laplace import LaplaceMechanism
from compliance.mechanisms.mechanism import Mechanism

__all__ = ["MECHANISMS", "Mechanism"]

_ALL: tuple[Mechanism, ...] = (Exact(), LaplaceMechanism(), Conceal())

MECHANISMS: dict[str, Mechanism] = {mechanism.name: mechanism for mechanism in _ALL}
