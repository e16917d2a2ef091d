"""Two services of one PostgreSQL ledger, under faults: what developers hear is what the ledger says.

`tests/support/replicas.py` has the faults happen, and `tests/support/ledger_history.py`, which has nothing of the
service, judges.
"""

from __future__ import annotations

import signal
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support import ledger_history
from tests.support.loans_deployment import CHARGE, PLENTY
from tests.support.replicas import Stuck, replicas


def under_faults(folder: Path, faults: int, requests: int, seed: int, budget: float = PLENTY) -> None:
    """Nothing is lost, charged or answered twice, and no budget is exceeded."""
    began = time.monotonic()
    with replicas(folder, seed, budget) as both:
        both.run(faults, requests)
        if budget < PLENTY:
            both.spend()
        both.ask_again(10)
        print(both.figures() | {"seconds": round(time.monotonic() - began, 1)})  # noqa: T201
        assert both.faults() == [], f"seed {seed}"
        told = {call.refusal for call in both.calls}
        assert told <= {"", "LEDGER_UNAVAILABLE", "BUDGET_EXHAUSTED"}, f"seed {seed}"
        assert ("BUDGET_EXHAUSTED" in told) == (budget < PLENTY), f"seed {seed}"
        assert "Traceback" not in both.deployment.log, f"seed {seed}"
        assert len(both.calls) >= requests


@pytest.mark.check
def test_two_services_under_a_few_faults(tmp_path: Path) -> None:
    under_faults(tmp_path, faults=3, requests=40, seed=1)


@pytest.mark.slow(seconds=75)
def test_two_services_whose_budget_runs_out_under_40_faults(tmp_path: Path) -> None:
    under_faults(tmp_path, faults=40, requests=400, seed=2, budget=1500 * CHARGE)


@pytest.mark.slow(seconds=80)
@pytest.mark.timeout(900)
@pytest.mark.parametrize("budget", [PLENTY, 2000 * CHARGE], ids=["plenty", "a budget that runs out"])
def test_two_services_under_80_faults(tmp_path: Path, budget: float) -> None:
    under_faults(tmp_path, faults=80, requests=600, seed=3, budget=budget)


# A standby takes the server's place -----------------------------------------------------------------------------------


@pytest.mark.slow(seconds=12)
def test_a_standby_that_lags_is_refused_and_one_that_does_not_is_gone_on_with(tmp_path: Path) -> None:
    with replicas(tmp_path, seed=5) as both, both.deployment.client("alice", both.addresses) as audits:
        both.run(faults=0, requests=40)
        late, good = both.standby(), both.standby()
        late.stop(signal.SIGINT)
        assert both.ask(audits, "alice", "the last").answer is not None
        good.wait_for(both.server)
        both.server.stop()

        late.promote()
        both.lead_to(late)
        had = both.kept(late).records
        for address in both.addresses:
            with both.deployment.client("alice", address) as one:
                for request_id in ("the last", "a new one", "0 1"):
                    assert both.ask(one, "alice", request_id).refusal == "LEDGER_UNAVAILABLE"
        assert "the ledger was replaced while it was in use" in both.deployment.log
        both.kill(both.addresses[0])
        with both.deployment.started("--listen", both.addresses[0]) as process:
            assert process.wait(300) == 2
        end = max(record.sequence for record in had)
        said = both.deployment.log.splitlines()[-1]
        assert f"it is an old copy: it ends at record {end}, and {end + 1} was sealed" in said
        assert both.kept(late).records == had
        assert {fault.kind for fault in both.faults(late)} == {ledger_history.NO_RECORD, ledger_history.SEALED_AHEAD}
        late.stop()

        good.promote()
        both.lead_to(good)
        both.start(both.addresses[0])
        both.servers.sort(key=lambda server: server is not good)
        both.run(faults=1, requests=40, kinds={"cut": 1})
        both.ask_again(10)
        assert both.ask(audits, "alice", "the last").answer is not None
        assert both.faults() == []
        assert "Traceback" not in both.deployment.log


# Broken twins ---------------------------------------------------------------------------------------------------------

TWINS = Path(__file__).parents[1] / "twins" / "replicas"


def judged(folder: Path, twin: str, faults: int, kinds: dict[str, int], budget: float = PLENTY) -> tuple[set[str], str]:
    """Run two services of a twin under faults, or until nobody is answered; what is wrong by kind, and their log."""
    with replicas(folder, 4, budget, (str(TWINS / f"{twin}.py"),), patience=5) as both:
        with suppress(Stuck):
            both.run(faults, requests=200, kinds=kinds)
        both.ask_again(10)
        found = Counter(fault.kind for fault in both.faults())
        print(twin, dict(found), both.figures())  # noqa: T201
        return set(found), both.deployment.log


@pytest.mark.slow(seconds=12)
def test_services_that_hold_no_chain_exceed_a_budget_and_break_the_chain(tmp_path: Path) -> None:
    found, _ = judged(tmp_path, "no_locks", 4, {"cut": 1}, budget=64 * CHARGE)
    assert {ledger_history.BROKEN, ledger_history.EXCEEDED} <= found


@pytest.mark.check
def test_services_that_seal_before_they_commit_seal_what_is_lost_and_refuse_for_ever(tmp_path: Path) -> None:
    found, log = judged(tmp_path, "seals_first", 20, {"restart_server": 1})
    assert found == {ledger_history.SEALED_AHEAD}
    assert "it is an old copy: it ends at record" in log


@pytest.mark.check
def test_services_that_know_their_own_ids_alone_charge_and_answer_twice(tmp_path: Path) -> None:
    found, _ = judged(tmp_path, "ids_of_each_replica", 4, {"cut": 1})
    assert {ledger_history.CHARGED_TWICE, ledger_history.TWO_ANSWERS} <= found
