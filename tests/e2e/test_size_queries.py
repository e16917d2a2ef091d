"""Size queries in whole games: which answers are counted as metric answers, and who asks for sizes at all."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairwall.laws.metrics.metric import strata_of
from fairwall.rpc.arrays import from_message
from sim.transcripts.files import paths, read
from sim.transcripts.messages import PlayedSession, TrialMessages
from sim.verify.check import verify
from tests.support.command import played

SCENARIO = """
[scenario]
name = "sizes"
game = "reveal"
trials = 1
seed = 5
[data]
source = "german"
protected = "sex"
test_size = 60
[compliance]
metric = "sp"
mechanism = "laplace"
epsilon = 200.0
[developer]
strategy = "best"
queries = 12
perturbation = 1.0
"""

TWO_STRATA = [pytest.param("eodds_sum", 1.0, marks=pytest.mark.slow), ("eodds_sum", 0.1), ("eodds_max", 1.0)]


def game(folder: Path, settings: Mapping[str, object]) -> tuple[Path, dict[str, Any], TrialMessages]:
    """Play a trial; the run's folder, its line and its messages."""
    file = folder / "sizes.toml"
    file.write_text(SCENARIO)
    words = [word for key, value in settings.items() for word in ("--set", f"{key}={json.dumps(value)}")]
    run = played(folder, file, *words)
    (text,) = (run / "trials.jsonl").read_text().splitlines()
    session = PlayedSession({path.parent.name: read(path) for path in paths(run)})
    return run, json.loads(text), session.trial("deal-1")


@pytest.mark.check
@pytest.mark.parametrize(("metric", "perturbation"), TWO_STRATA)
def test_with_two_strata_every_metric_answer_is_counted_and_no_size_query(
    tmp_path: Path, metric: str, perturbation: float
) -> None:
    run, line, messages = game(tmp_path, {"compliance.metric": metric, "developer.perturbation": perturbation})
    audits = messages.submissions["SubmitAuditReport"].request.audits
    answers = [(from_message(audit.exact), from_message(audit.released)) for audit in audits]
    # What is asked alone is a size query, or for the gap of the people who are not played on.
    alone = [len(exact) == 1 for exact, _ in answers]
    near = perturbation < 1
    assert alone == ([True, True, False] if near else [True, False]) * 2, "size, metrics, size, metrics"
    assert line["size_queries"] == sum(alone)
    exact, released = (np.concatenate([one[i] for one in answers if len(one[0]) > 1]) for i in (0, 1))
    assert line["queries"] == len(exact)
    assert line["trace"]["exact"] == exact.tolist()
    assert line["trace"]["released"] == released.tolist()
    assert line["query_error_mean"] == pytest.approx(float(np.abs(released - exact).mean()))
    assert verify(run).findings == ()


KNOWN = [
    ("sensing", "sp", "conceal", 0.1),
    pytest.param("sensing", "eo", "randomized-response", 0.1, marks=pytest.mark.slow),
    pytest.param("best", "di", "counts", 1.0, marks=pytest.mark.slow),
    pytest.param("best", "abs_sp", "laplace", 0.1, marks=pytest.mark.slow),
    pytest.param("best", "eodds_max", "laplace", 1.0, marks=pytest.mark.slow),
    ("best", "eodds_sum", "laplace", 1.0),
]


@pytest.mark.check
@pytest.mark.parametrize(("strategy", "metric", "mechanism", "perturbation"), KNOWN)
def test_whoever_knows_n0_asks_for_no_size_and_metric_queries_get_all_of_epsilon(
    tmp_path: Path, strategy: str, metric: str, mechanism: str, perturbation: float
) -> None:
    run, line, messages = game(
        tmp_path,
        {
            "developer.strategy": strategy,
            "compliance.metric": metric,
            "compliance.mechanism": mechanism,
            "developer.perturbation": perturbation,
            "developer.knows": ["n0"],
        },
    )
    assert line["size_queries"] == 0
    assert line["epsilon_spent"] == pytest.approx(200.0)
    audits = messages.submissions["SubmitAuditReport"].request.audits
    assert sum(len(from_message(audit.exact)) for audit in audits) == line["queries"]
    dealt = messages.cards["ComplianceDeal"].arrays
    assert dealt is not None
    told = messages.cards["DeveloperDeal"].deal.disadvantaged
    strata = strata_of(metric, dealt["labels"])
    assert list(told) == [int((dealt["protected"][inside] == 0).sum()) for inside in strata]
    assert verify(run).findings == ()
