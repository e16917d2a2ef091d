"""Binary local hashing (Bassily, Smith 2015): hash to one of two values, flip the hash at random, report who shares it.

A person's hash function is uniform among all functions, and no two persons share one. It is drawn only where it meets
the reported hash: at every value but the true one it does so with probability 1/2, independently. See
`fairwall.laws.local.protocols`.
"""

from compliance.mechanisms.local.bits import sample_bits
from compliance.mechanisms.local.protocol import LocalProtocol
from fairwall.laws.local import LOCAL_LAWS

BLH = LocalProtocol(LOCAL_LAWS["blh"], sample_bits)
