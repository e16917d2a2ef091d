"""Says that it is well whatever becomes of its ledger."""

from compliance.__main__ import main
from compliance.ledger.writable import Writable

KILLED_BY = "C738"

Writable.__call__ = lambda _: True

if __name__ == "__main__":
    main()
