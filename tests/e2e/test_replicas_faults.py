"""Two services of one PostgreSQL ledger, under faults: what developers hear is what the ledger says.

`tests/replicas.py` has the faults happen, and `tests/history.py`, which has nothing of the service, judges.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.loans import CHARGE, PLENTY
from tests.replicas import replicas


def under_faults(folder: Path, faults: int, requests: int, seed: int, charges: float = PLENTY / CHARGE) -> None:
    """Nothing is lost, charged or answered twice, and no budget is exceeded."""
    began = time.monotonic()
    with replicas(folder, seed, charges * CHARGE) as both:
        both.run(faults, requests)
        both.ask_again(10)
        print(both.figures() | {"seconds": round(time.monotonic() - began, 1)})  # noqa: T201
        assert both.faults() == [], f"seed {seed}"
        told = {call.refusal for call in both.calls}
        assert told <= {"", "LEDGER_UNAVAILABLE", "BUDGET_EXHAUSTED"}, f"seed {seed}"
        assert ("BUDGET_EXHAUSTED" in told) == (charges < PLENTY), f"seed {seed}"
        assert "Traceback" not in both.deployment.log, f"seed {seed}"
        assert len(both.calls) >= requests


def test_two_services_under_a_few_faults(tmp_path: Path) -> None:
    under_faults(tmp_path, faults=6, requests=100, seed=1)
