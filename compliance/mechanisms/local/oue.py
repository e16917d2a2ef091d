"""Optimal unary encoding (Wang et al. 2017): the true value's bit is a coin, the others are seldom 1."""

from compliance.mechanisms.local.bits import sample_bits
from compliance.mechanisms.local.protocol import LocalProtocol
from fairwall.laws.local import LOCAL_LAWS

OUE = LocalProtocol(LOCAL_LAWS["oue"], sample_bits)
