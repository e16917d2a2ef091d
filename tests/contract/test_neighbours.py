"""With the outputs of noise fixed, nothing that leaves a service differs between neighbours, whatever is asked.

Policies, data sets that differ in one person's protected values, and sequences of calls are drawn. What is compared is
all of it: answers, intervals, charges, refusals, what is said to be revealed, log, telemetry, ledger and signed page;
and what noise was asked for. So a difference is a leak beside noisy numbers, whose laws other tests look at.
"""

from __future__ import annotations

import secrets
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest

from compliance.answers.groups import METRIC as BY_GROUP
from compliance.ledger.accountant import FREE
from compliance.ledger.entries import LedgerEntry
from compliance.noise.sampling import Seeded
from fairwall.laws.local import LOCAL_LAWS
from fairwall.laws.mechanisms.table import BY_GROUP as COUNTS
from fairwall.laws.metrics.metric import METRICS
from fairwall.rpc import journal
from fairwall.rpc.access import CALLERS
from sim.deployment.certificates import write
from tests.neighbours.compared import first_difference, played
from tests.neighbours.drawn import DEPLOYABLE, draw
from tests.neighbours.outputs import Tape
from tests.neighbours.world import NAME
from tests.twins.leaks import LEAKS

METHODS = {path.rpartition("/")[2] for path in CALLERS if path.startswith("/fairwall.compliance.")} - {"SumByGroup"}
"""All but what belongs to a game alone."""

REFUSING = {"AuditModels", "AuditSealed", "AuditTable", "HandModel", "Tabulate"}
"""Those that these deployments do not answer: they have no features, no engine and no study's table, take no model."""

LAWS = {
    *("laplace", "gaussian", "cauchy", "cube", "bernoulli", "bernoulli_exp", "integers", "permutation"),
    *("turned", "balanced", "sanitise", "digest"),
}
REASONS = {
    *("CALLER_NOT_ALLOWED", "DEAL_UNKNOWN", "REQUEST_MALFORMED", "REQUEST_ID_INVALID", "REQUEST_ID_REUSED"),
    *("METRIC_UNKNOWN", "METRIC_NOT_ALLOWED", "EPSILON_INVALID", "QUERIES_OUT_OF_RANGE"),
    *("PREDICTIONS_SHAPE", "PREDICTIONS_NOT_FINITE", "PREDICTIONS_OUT_OF_RANGE", "PREDICTIONS_NOT_BINARY"),
    *("ROWS_DIFFER", "NO_FEATURES", "TABLE_UNKNOWN", "BUDGET_EXHAUSTED", "QUOTA_EXHAUSTED"),
}

TOGETHER = 5
"""Sequences of a case."""


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """Where worlds are played: in memory if there is such a disk, for a ledger waits for the disk at every record."""
    memory = Path("/dev/shm")  # noqa: S108
    place = Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else None))
    write(place / "certificates", NAME, ["alice", "bob"], 1)
    yield place
    shutil.rmtree(place)


def differences(seeds: Iterable[int], folder: Path, *, is_whole: bool = False) -> dict[int, object]:
    """Play sequences; what differs, by the seed of those in which anything does."""
    found = ((seed, first_difference(draw(seed, is_whole=is_whole), folder)) for seed in seeds)
    return {seed: difference for seed, difference in found if difference is not None}


@pytest.mark.few(1)
@pytest.mark.parametrize("first", range(0, 40, TOGETHER))
def test_neighbours_differ_in_nothing_but_noisy_numbers(first: int, folder: Path) -> None:
    assert differences(range(first, first + TOGETHER), folder) == {}


@pytest.mark.few(2)
@pytest.mark.parametrize("seed", range(6))
def test_nor_in_what_is_said_at_the_start_and_in_the_page(seed: int, folder: Path) -> None:
    assert differences([seed], folder, is_whole=True) == {}


@pytest.mark.slow(seconds=25)
@pytest.mark.parametrize("case", range(20))
def test_nor_in_500_sequences_that_are_drawn_anew(case: int, folder: Path) -> None:
    assert differences((secrets.randbits(40) for _ in range(25)), folder) == {}


FOUND_BY = {
    "tables_cost_less_of_uneven_groups": 0,
    "small_groups_are_refused": 7,
    "whoever_lacks_a_group_is_left_out": 58,
}
"""Of some leaks, a sequence that shows them; of the others it is sought."""


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "leak",
    [*FOUND_BY, *(pytest.param(leak, marks=pytest.mark.slow(seconds=11)) for leak in LEAKS if leak not in FOUND_BY)],
)
def test_a_service_that_leaks_is_found_out(leak: str, folder: Path) -> None:
    seeds = [*range(200)]
    seeds.insert(0, FOUND_BY.get(leak, 0))
    assert any(first_difference(draw(seed), folder, LEAKS[leak]) for seed in seeds)


@pytest.mark.slow
def test_what_is_asked_comes_to_all_that_a_service_does(folder: Path) -> None:
    mechanisms = {*DEPLOYABLE, *LOCAL_LAWS, COUNTS} - {"recommended"}
    everything = {
        *(("method", method) for method in METHODS),
        *(("reason", reason) for reason in REASONS),
        *(("law", law) for law in LAWS),
        *(("metric", metric) for metric in (*METRICS, BY_GROUP, "release")),
        *(("mechanism", mechanism) for mechanism in mechanisms),
        ("loss", "none"),
    }
    came = set[tuple[str, str]]()
    for seed in range(1000):
        seen, tape = played(draw(seed), 0, folder, Tape(Seeded(np.random.default_rng(seed))))
        came |= {("law", law) for law, *_ in tape.asked}
        for call in (line[3] for line in seen if isinstance(line, tuple) and line[0] == journal.LOG.name):
            method = call["method"].rpartition("/")[2]
            came |= {("reason", call["reason"])} if call["outcome"] == "refused" else {("method", method)}
            came |= {("method", method)} & {("method", each) for each in REFUSING}
        for asked in (each.request for each in seen if isinstance(each, LedgerEntry)):
            came |= {("metric", asked.metric), ("mechanism", asked.mechanism)}
            came |= {("loss", "none")} if asked.loss == FREE else set()
        if came >= everything:
            break
    assert came == everything
