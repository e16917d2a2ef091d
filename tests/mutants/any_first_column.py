"""Goes on from a ledger whose first protected column is another one."""

import dataclasses

from compliance import ledger
from compliance.__main__ import main

KILLED_BY = "C968"

sound = ledger._check_account

ledger._check_account = lambda account, held: sound(dataclasses.replace(account, data=b""), held)

if __name__ == "__main__":
    main()
