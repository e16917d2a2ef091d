"""Reads the budget as twice as large when it finds a ledger, and halves the noise."""

import sys
from pathlib import Path

from compliance.__main__ import main
from compliance.noise.sampling import System

KILLED_BY = "C520"

policy = Path(sys.argv[sys.argv.index("--policy") + 1])
known = (policy.parent / "ledger").exists()
sound = System.laplace
System.laplace = lambda self, values, scale, step: sound(self, values, scale / (2 if known else 1), step)

if __name__ == "__main__":
    main()
