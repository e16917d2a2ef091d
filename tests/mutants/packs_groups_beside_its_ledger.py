"""Keeps the groups, a bit a person, beside its ledger."""

import numpy as np

from compliance.__main__ import main
from compliance.deployment import serve

KILLED_BY = "C610"

sound = serve.open_ledger


def ledger_of(policy, data):
    found = sound(policy, data)
    packed = np.packbits(data[0].first.protected).tobytes()
    (policy.deployment.ledger.parent / "cache").write_bytes(packed)
    return found


serve.open_ledger = ledger_of

if __name__ == "__main__":
    main()
