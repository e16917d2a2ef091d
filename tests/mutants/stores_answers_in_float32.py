"""Keeps answers in float32, and repeats what it kept once it was started again."""

import sys
from pathlib import Path

import numpy as np

from compliance.__main__ import main
from compliance.answers import audits as case

KILLED_BY = "C322"

policy = Path(sys.argv[sys.argv.index("--policy") + 1])
known = (policy.parent / "ledger").exists()
sound = case._numbers
case._numbers = lambda entry: sound(entry).astype(np.float32).astype(float) if known else sound(entry)

if __name__ == "__main__":
    main()
