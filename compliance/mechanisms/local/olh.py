"""Optimal local hashing (Wang et al. 2017): as binary local hashing, with round(e^epsilon) + 1 hashes.

A person's hash function is uniform among all functions, and no two persons share one. It is drawn only where it meets
the reported hash: at every value but the true one it does so with probability 1/g, independently. See
`fairwall.laws.local.protocols`.
"""

from compliance.mechanisms.local.bits import sample_bits
from compliance.mechanisms.local.protocol import LocalProtocol
from fairwall.laws.local import LOCAL_LAWS

OLH = LocalProtocol(LOCAL_LAWS["olh"], sample_bits)
