"""A mechanism and a metric that nothing but their rows know: they play, verify, plan and are audited like any other."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from compliance.answers.expectation import expect
from compliance.intervals.interval import probabilities_above
from compliance.mechanisms import MECHANISMS
from developer.reveal.decode.likelihood import law_of
from developer.reveal.strategies.strategy import PublicTerms
from fairwall.laws.choice.prediction import standings
from fairwall.laws.mechanisms.table import MECHANISM_LAWS
from fairwall.laws.metrics.group_size_range import DEFAULT_SHARES
from fairwall.laws.metrics.metric import METRICS
from fairwall.laws.metrics.sensitivity import LabelGroupCounts
from fairwall.laws.noise.distributions import Laplace
from fairwall.laws.privacy.exposure import revealed
from sim.conformance.law import exact_gaps
from sim.conformance.promise import promise_of
from sim.conformance.target import DescribedDeployment, KnownPeople
from sim.planning import PlanError
from sim.planning.answer_laws import PlannedBatch
from sim.planning.audit import make
from tests.support import toy_mechanism, toy_metric
from tests.support.command import SMALL

TESTS = Path(__file__).parent.parent


def program(toy: str, module: str) -> list[str]:
    return [sys.executable, str(TESTS / "support" / f"toy_{toy}.py"), module]


def told(toy: str, *arguments: object) -> str:
    words = [*program(toy, "sim.cli.start"), *map(str, arguments)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    return done.stdout


@pytest.fixture
def toy_mechanism_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MECHANISM_LAWS, "toy", toy_mechanism.LAW)  # type: ignore[arg-type]
    monkeypatch.setitem(MECHANISMS, "toy", toy_mechanism.toy())


@pytest.mark.check
@pytest.mark.parametrize(
    ("toy", "change"), [("mechanism", ('"conceal"', '"toy"')), ("metric", ('"conceal"', '"counts"\nmetric = "tnr"'))]
)
def test_it_plays_verifies_and_reports(toy: str, change: tuple[str, str], tmp_path: Path) -> None:
    scenario = tmp_path / "small.toml"
    scenario.write_text(SMALL.replace(*change).replace("seed = 7", 'seed = 7\nsecret = "random"'))
    programs = [
        word
        for party in ("compliance", "developer")
        for word in (f"--{party}", shlex.join(program(toy, f"{party}.__main__")))
    ]
    folder = Path(json.loads(told(toy, "run", scenario, *programs, "--out", tmp_path, "--json"))["run_dir"])
    assert "\nno findings: " in told(toy, "verify", folder)
    assert ("Toy" if toy == "mechanism" else "true negative rate gap") in (folder / "report.html").read_text()


@pytest.mark.check
def test_a_privacy_audit_knows_its_exact_loss() -> None:
    assert "exact loss   0.5," in told("mechanism", "test", "privacy", "toy")


@pytest.mark.check
def test_a_metric_is_audited_and_recommended_for() -> None:
    assert "exact loss   1," in told("metric", "test", "privacy", "laplace", "--metric", "tnr")
    batch = ("--people", 400, "--models", 2, "--epsilon", 1, "--json")
    of_tnr = json.loads(told("metric", "plan", "mechanism", "--metric", "tnr", *batch))
    assert (
        of_tnr["mechanisms"] == json.loads(told("metric", "plan", "mechanism", "--metric", "fpr", *batch))["mechanisms"]
    )


@pytest.mark.usefixtures("toy_mechanism_stands")
def test_whatever_asks_about_a_mechanism_reads_its_record() -> None:
    law = law_of(PublicTerms("sp", "toy", 1.0), n0=20, n1=80, queries=3, epsilon=1.0)
    assert law == law_of(PublicTerms("sp", "laplace", 1.0), n0=20, n1=80, queries=3, epsilon=0.5)
    assert isinstance(law, Laplace)
    people = KnownPeople(np.zeros(100, np.uint8), (np.arange(100) >= 20).astype(np.uint8))
    promised = promise_of(DescribedDeployment(mechanism="toy"), people, "sp", 3, 1.0)
    assert promised is not None
    assert promised.law == law
    assert "toy" in {row.name for row in standings("sp", 123, 3, 1.0)}
    assert revealed("toy", "sp", 123, 3, 2.0) == revealed("laplace", "sp", 123, 3, 1.0)
    expected = expect(MECHANISMS["toy"], "sp", (50, 50), 1, 50.0, 0.0, DEFAULT_SHARES)
    assert expected.half_width > expected.error > 0
    ends, values = (np.array([0.1]), np.array([0.2])), np.full((1, 100), 0.5)
    assert np.isfinite(probabilities_above(*ends, values, "sp", 0.1, "toy")).all()
    counts = LabelGroupCounts(100, 200, 100, 200)
    assert make(PlannedBatch("sp", counts, 1, 2.0, 0.0, "toy", "clamp"), 0.1).worst.probability == pytest.approx(
        make(PlannedBatch("sp", counts, 1, 1.0, 0.0, "laplace", "clamp"), 0.1).worst.probability, rel=1e-5
    )
    with pytest.raises(PlanError, match="--mechanism: the noise of toy on metric eodds_max is not known"):
        make(PlannedBatch("eodds_max", counts, 1, 2.0, 0.0, "toy", "clamp"), 0.1)


def test_whatever_asks_about_a_metric_reads_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(METRICS, "tnr", toy_metric.TNR)
    rng = np.random.default_rng(1)
    people = KnownPeople(rng.integers(0, 2, 60).astype(np.uint8), rng.integers(0, 2, 60).astype(np.uint8))
    scores = rng.random((2, 60))
    # Whom a model rightly rejects it does not wrongly accept.
    assert exact_gaps(people, "tnr", scores) == pytest.approx(-exact_gaps(people, "fpr", scores))
    counts = LabelGroupCounts(100, 200, 100, 200)
    for mechanism in ("laplace", "cauchy", "counts", "recommended"):
        plans = [make(PlannedBatch(metric, counts, 1, 2.0, 0.0, mechanism, "clamp"), 0.1) for metric in ("tnr", "fpr")]
        assert plans[0].worst == plans[1].worst


def test_a_metric_without_a_number_on_the_wire_is_refused_when_it_is_imported() -> None:
    program = (
        "from fairwall.laws.metrics.metric import METRICS\nfrom tests.support.toy_metric import TNR\n"
        "METRICS['tnr'] = TNR\n"
        "import fairwall.wire.metrics"
    )
    words = [sys.executable, "-c", program]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=TESTS.parent)
    assert done.stderr.splitlines()[-1].endswith(
        "metric tnr: missing is its value in proto/fairwall/wire/v1/metric.proto, and `make proto`"
    )
