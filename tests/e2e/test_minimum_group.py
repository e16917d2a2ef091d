"""A service whose policy says how small groups may be: what its noise counts on, and what it cannot take back."""

from __future__ import annotations

import math
import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import kstest, laplace

from compliance.deployment.running import read_by, service_of
from fairwall.laws.mechanisms.calibration import laplace_law
from tests.support.loans_deployment import PEOPLE, Deployment

MODELS, EPSILON = 600, 64.0


@pytest.fixture
def deployment(tmp_path: Path) -> Deployment:
    found = Deployment(tmp_path)
    change(found, "queries_max = 1", f"queries_max = {MODELS}")
    return found


def change(deployment: Deployment, old: str, new: str) -> None:
    policy = deployment.folder / "policy.toml"
    text = policy.read_text()
    assert text.count(old) == 1
    policy.write_text(text.replace(old, new))


def reload(deployment: Deployment) -> str:
    """Have the policy read again; why it is not in force."""
    ledger = deployment.folder / "ledger" / "ledger.sqlite"
    process, before = service_of(ledger), read_by(ledger).times
    assert process
    os.kill(process, signal.SIGHUP)
    deadline = time.monotonic() + 300
    while (told := read_by(ledger)).times <= before:  # it is none while it is written
        assert time.monotonic() < deadline, deployment.log
        time.sleep(0.005)
    return told.problem


def refused(deployment: Deployment) -> str:
    """The one line with which the service does not start."""
    with deployment.started() as process:
        assert process.wait(300) == 2
    return [line for line in deployment.log.splitlines() if line.startswith("compliance: ")][-1]


@pytest.mark.check
def test_a_service_counts_on_the_minimum_of_its_policy_and_never_on_less_again(deployment: Deployment) -> None:
    change(deployment, "minimum_group = 5", "minimum_group = 20")
    with deployment.served(), deployment.client("alice") as alice:
        assert alice.terms().minimum_group == 20
        # The same number for everybody: no gap, so that all is noise.
        answer = alice.ask(np.full((MODELS, PEOPLE), 0.5), "sp", EPSILON, request_id="noise")
        scale = laplace_law("sp", PEOPLE, MODELS, EPSILON, 20).scale
        # One in ten million sound services fails; noise for groups of one, 5.1 times as wide, or of 21 people does not
        # pass, the second by the half-width.
        assert kstest(answer.gaps, laplace(scale=scale).cdf).pvalue > 1e-7
        assert kstest(answer.gaps, laplace(scale=laplace_law("sp", PEOPLE, MODELS, EPSILON).scale).cdf).pvalue < 1e-7
        one = alice.ask(np.full(PEOPLE, 0.5), "sp", EPSILON)
        low, high = one.low[0], one.high[0]
        assert (high - low) / 2 == pytest.approx(
            laplace_law("sp", PEOPLE, 1, EPSILON, 20).scale * math.log(20), rel=1e-4
        )
        change(deployment, "minimum_group = 20", "minimum_group = 19")
        problem = "data set loans: data.minimum_group: must be at least 20, not 19"
        assert problem in reload(deployment)
        assert alice.terms().minimum_group == 20
    assert problem in refused(deployment)
    change(deployment, "minimum_group = 19", "minimum_group = 25")
    with deployment.served(), deployment.client("alice") as alice:
        assert alice.terms().minimum_group == 25
        # What was bought is bought.
        again = alice.ask(np.full((MODELS, PEOPLE), 0.5), "sp", EPSILON, request_id="noise")
        assert again.gaps.tobytes() == answer.gaps.tobytes()


def test_a_service_is_not_started_where_nobody_could_be_in_the_other_group(deployment: Deployment) -> None:
    change(deployment, "minimum_group = 5", f"minimum_group = {PEOPLE // 2}")
    assert f"data.minimum_group: a metric looks at no more than {PEOPLE} people" in refused(deployment)


@pytest.mark.check
def test_a_minimum_that_nothing_counted_on_may_be_lowered(deployment: Deployment) -> None:
    change(deployment, 'mechanism = "laplace"', 'mechanism = "counts"')
    with deployment.served(), deployment.client("alice") as alice:
        alice.ask(np.full(PEOPLE, 0.5), "sp", 1.0)
        change(deployment, "minimum_group = 5", "minimum_group = 2")
        assert reload(deployment) == ""
        assert alice.terms().minimum_group == 2
