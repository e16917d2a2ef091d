"""One-time RAPPOR (Erlingsson, Pihur, Korolova 2014), or symmetric unary encoding: equal flips of all bits."""

from compliance.mechanisms.local.bits import sample_bits
from compliance.mechanisms.local.protocol import LocalProtocol
from fairwall.laws.local import LOCAL_LAWS

RAPPOR = LocalProtocol(LOCAL_LAWS["rappor"], sample_bits)
