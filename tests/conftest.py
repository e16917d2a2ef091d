"""What holds for all tests."""

from __future__ import annotations

import os

# Before anything imports numpy. Several tests run at once on few cores, where threads of linear algebra spend most of
# their time waiting for one another: some tests took ten times the processor time.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")
