"""Commits anew whenever it is started."""

import secrets

from compliance.__main__ import main
from compliance.deployment import accounts

KILLED_BY = "C831"

sound = accounts.committed
run = secrets.token_bytes(8)
accounts.committed = lambda policy, records, derive, begun: sound(policy, records, derive, begun + run)

if __name__ == "__main__":
    main()
