"""A mechanism or a metric that does not say what others look up by its name is refused before anybody is answered."""

from __future__ import annotations

import math
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from compliance.intervals.interval import probabilities_above
from compliance.ledger import Ledger
from compliance.ledger.accountant import Budget, Neighbours, pure
from compliance.ledger.entries import LOST, LedgerError, Reply, Request, ServedData
from compliance.mechanisms import MECHANISMS
from compliance.mechanisms.mechanism import candidates
from fairwall.errors import UserError
from fairwall.laws.mechanisms.table import BY_GROUP, MECHANISM_LAWS, MechanismLaw
from fairwall.laws.metrics.metric import METRICS, Metric, MetricError, MetricPart
from sim.games import read
from sim.planning.worst import true_gap
from tests.support.command import SMALL
from tests.support.loans_deployment import Deployment, write_off

TOY = """
import dataclasses, runpy, sys
import compliance.mechanisms as mechanisms
mechanisms.MECHANISMS["toy"] = dataclasses.replace(mechanisms.MECHANISMS["laplace"], name="toy")
sys.argv = ["compliance", *sys.argv[1:]]
from compliance.__main__ import main
main()
"""


def started(folder: Path, program: str) -> tuple[int, list[str]]:
    """Start a service with a change of its code; its status, and what it says but for warnings."""
    done = subprocess.run(
        [sys.executable, "-c", program, "--policy", str(folder / "policy.toml")],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return done.returncode, [line for line in done.stderr.splitlines() if "WARNING" not in line]


@pytest.mark.check
def test_a_service_does_not_start_with_what_says_nothing_of_itself(tmp_path: Path) -> None:
    deployment = Deployment(tmp_path)
    policy = tmp_path / "policy.toml"
    policy.write_text(policy.read_text().replace('"laplace"', '"toy"'))
    status, (said,) = started(deployment.folder, TOY)
    assert status == 2
    assert said.startswith("compliance: mechanism toy: missing is ")
    assert all(what in said for what in ("MECHANISM_LAWS", "proto/fairwall/laws/mechanisms/table.py"))


def test_nor_is_a_game_played_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = tmp_path / "toy.toml"
    scenario.write_text(SMALL.replace('"conceal"', '"toy"'))
    monkeypatch.setitem(MECHANISMS, "toy", MECHANISMS["conceal"])
    monkeypatch.delitem(MECHANISM_LAWS, "conceal")  # type: ignore[arg-type]
    with pytest.raises(UserError, match="mechanism toy: missing is its row") as caught:
        read(scenario)
    assert "\n" not in str(caught.value)


def test_what_no_mechanism_is_taken_to_be_has_to_be_said_of_each() -> None:
    for left_out in ("noise_on", "error", "counts_on_groups", "interval"):
        laplace = MECHANISM_LAWS["laplace"]
        stated = {field.name: getattr(laplace, field.name) for field in fields(laplace) if field.name != left_out}
        with pytest.raises(TypeError, match=f"missing 1 required keyword-only argument: '{left_out}'"):
            MechanismLaw(**stated)


def test_noise_of_which_nobody_knows_is_taken_to_count_on_groups() -> None:
    rows = {name: row.counts_on_groups for name, row in MECHANISM_LAWS.items()}
    for mechanism, counts in {"toy": True, LOST: True, **rows, BY_GROUP: False}.items():
        ledger = Ledger()
        ledger.set_budget("loans", Neighbours.A_FLIP, Budget(2.0))
        ledger.allocate("loans", "alice", 2.0)
        ledger.admit(b"policy", [ServedData("loans", ("alice",), ("sp",), 20)])
        if mechanism == LOST:
            write_off(ledger, "loans", pure(0.5))
        else:
            asked = Request("loans", "alice", "r", b"d", "sp", mechanism, Neighbours.A_FLIP, pure(0.5))
            ledger.settle(asked, lambda _: Reply(b""))
        refused = pytest.raises(LedgerError, match="must be at least 20, not 5") if counts else nullcontext()
        with refused:
            ledger.admit(b"another", [ServedData("loans", ("alice",), ("sp",), 5)])


def test_nothing_is_read_from_intervals_of_which_nobody_knows_what_they_are() -> None:
    ends, values = (np.array([-0.1]), np.array([0.1])), np.full((1, 50), 0.5)
    assert np.isfinite(probabilities_above(*ends, values, "sp", 0.05, "counts")).all()
    for name in ("toy", "conceal"):
        assert np.isnan(probabilities_above(*ends, values, "sp", 0.05, name)).all()


_ODDS = METRICS["eodds_max"].parts


STATED: list[dict[str, object]] = [
    {"parts": _ODDS, "absolute": True},
    {"parts": _ODDS},
    {"parts": _ODDS, "joined": "max"},
    {"parts": _ODDS, "absolute": True, "joined": "mean"},
    {"parts": METRICS["sp"].parts, "absolute": True, "joined": "max"},
    {"parts": (MetricPart("prediction"), MetricPart("hit"))},
    {"parts": (MetricPart("prediction"), MetricPart("hit")), "binary": True},
    {"parts": (MetricPart("prediction"), MetricPart("correct")), "absolute": True, "joined": "sum"},
    {"parts": METRICS["sp"].parts, "binary": True},
    {"parts": ()},
    {"parts": METRICS["di"].parts, "bounded": False},
    {"parts": METRICS["ppv"].parts, "binary": True},
]


def test_a_metric_that_no_law_knows_cannot_be_made() -> None:
    for stated in STATED:
        with pytest.raises(MetricError, match=r"^metric toy: .* is missing( \(fairwall|: )") as caught:
            Metric("toy", "a toy", **stated)  # type: ignore[arg-type]
        assert "\n" not in str(caught.value)


def test_a_plan_joins_strata_as_the_metric_says() -> None:
    groups, ones = ((10, 10), (20, 10)), ((2, 7), (10, 8))
    for name, gap in (("eodds_max", 0.5), ("eodds_sum", 0.8)):
        assert true_gap(METRICS[name], groups, ones) == pytest.approx(gap)
        toy = Metric("toy", "a toy", _ODDS, absolute=True, joined=METRICS[name].joined)
        assert true_gap(toy, groups, ones) == pytest.approx(gap)


def test_what_mechanisms_refuse_by_their_records_they_do_refuse() -> None:
    for name, law in MECHANISM_LAWS.items():
        refuses = MECHANISMS[name].refuses
        assert (refuses("sp", 0.5, 0.0) is not None) == law.needs_delta, name
        assert (refuses("sp", law.epsilon_below, 1e-6) is not None) == (law.epsilon_below < math.inf), name
        assert refuses("sp", 0.5, 1e-6) is None, name


def test_recommended_knows_all_that_may_be_recommended() -> None:
    recommendable = {name for name, law in MECHANISM_LAWS.items() if law.recommendable}
    assert {one.name for one in candidates(MECHANISMS["recommended"], 1e-6)} == recommendable
    assert "conceal" not in recommendable
