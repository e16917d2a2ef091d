"""Makes the seed of committed noise of its key alone: terms may change, and noise is the same."""

from dataclasses import replace

from compliance.__main__ import main
from compliance.deployment import accounts
from fairwall.laws.commitment import digest_of_seed

KILLED_BY = "C831"

sound = accounts.committed


def committed(policy, records, derive, begun):
    found, seed = sound(policy, records, derive, begun), derive("committed noise")
    return replace(found, commitment=replace(found.commitment, seed_digest=digest_of_seed(seed)), seed=seed)


accounts.committed = committed

if __name__ == "__main__":
    main()
