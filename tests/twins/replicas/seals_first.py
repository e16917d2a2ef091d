"""Seals a record before it commits it, and is no faster than a disk: what dies in between is sealed and not there."""

import time

from compliance.__main__ import main
from compliance.ledger import Ledger
from compliance.ledger.head import Head

append_alone = Ledger._append


def append(self, held, record):
    chained = append_alone(self, held, record)
    if held.chain.seal is not None:
        held.chain.seal.write(Head(chained.sequence, chained.chain))
        time.sleep(0.02)
    return chained


Ledger._append = append

if __name__ == "__main__":
    main()
