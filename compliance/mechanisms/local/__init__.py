"""Sanitising of protected attributes, once, for training: the local differential privacy protocols, by name.

Their laws, costs and likelihoods are public and stand in `fairwall.laws.local`; this package draws from them.
"""

from typing import Any

from compliance.mechanisms.local.blh import BLH
from compliance.mechanisms.local.fair_binary import FAIR_BINARY_0, FAIR_BINARY_1
from compliance.mechanisms.local.grr import GRR
from compliance.mechanisms.local.olh import OLH
from compliance.mechanisms.local.oue import OUE
from compliance.mechanisms.local.protocol import LocalProtocol
from compliance.mechanisms.local.rappor import RAPPOR
from compliance.mechanisms.local.ss import SS
from compliance.mechanisms.local.the import THE, THE_SERVER
from compliance.noise.uniforms import Draw, seeded, system

__all__ = ["PROTOCOLS", "Draw", "LocalProtocol", "seeded", "system"]

_ALL: tuple[LocalProtocol[Any], ...] = (GRR, BLH, OLH, RAPPOR, OUE, SS, THE, THE_SERVER, FAIR_BINARY_0, FAIR_BINARY_1)

PROTOCOLS: dict[str, LocalProtocol[Any]] = {protocol.public.name: protocol for protocol in _ALL}
"""Every protocol by its name."""
