"""A rehearsal: the whole client, against people who do not exist, by a service that is gone with it."""

from __future__ import annotations

import inspect
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import psutil
import pytest

from fairwall import AuditClient, AuditRefused, UserError
from fairwall.client.audit_client import Rehearsal
from fairwall.tools.model_card import model_card

PEOPLE = 600
SCORES = np.random.default_rng(1).random(PEOPLE)
DECISIONS = np.arange(PEOPLE) % 3 == 0
ROWS = pd.DataFrame({"customer": np.arange(PEOPLE) + 5000, "income": 1.0, "repaid": np.arange(PEOPLE) % 2})


@pytest.fixture(scope="module")
def audits() -> Iterator[AuditClient]:
    with AuditClient.rehearsal(PEOPLE) as client:
        yield client


def once(audits: AuditClient) -> Any:
    return audits.ask(DECISIONS, "demographic_parity", 0.5, once=True)


CALLS: dict[str, Callable[[AuditClient], Any]] = {
    "ask": once,
    "search": lambda audits: audits.search(
        {"a": DECISIONS, "b": ~DECISIONS}, "sp", 0.5, utility={"a": 0.7, "b": 0.6}, baseline="b"
    ),
    "terms": AuditClient.terms,
    "expected_error": lambda audits: audits.expected_error("eo", 2, 0.5),
    "group_terms": AuditClient.group_terms,
    "by_group": lambda audits: audits.by_group(DECISIONS, ("group", "region"), 0.5),
    "count_by_group": lambda audits: audits.count_by_group(DECISIONS, "region", 0.5),
    "by_quantile": lambda audits: audits.by_quantile(np.linspace(0, 1, PEOPLE), "group", 0.5, quantiles=4),
    "by_segment": lambda audits: audits.by_segment(DECISIONS, np.arange(PEOPLE) % 2, "group", 0.5),
    "standardised_difference": lambda audits: audits.standardised_difference(
        np.linspace(0, 1, PEOPLE), "group", 0.5, bounds=(0, 1)
    ),
    "release_terms": AuditClient.release_terms,
    "release": lambda audits: audits.release(0.5),
}
"""How each method is called that a rehearsal answers."""


@pytest.mark.check
def test_every_public_method_is_answered_but_for_tables_models_and_commitments(
    audits: AuditClient, tmp_path: Path
) -> None:
    public = {name for name, _ in inspect.getmembers(AuditClient, inspect.isfunction) if not name.startswith("_")}
    assert public == CALLS.keys() | {"ask_table", "ask_sealed", "commit", "close"}
    for call in CALLS.values():
        assert call(audits) is not None
    with pytest.raises(AuditRefused) as caught:
        audits.ask_table("scores", "sp", 0.5, id="id")
    assert caught.value.reason == "TABLE_UNKNOWN"
    with pytest.raises(AuditRefused) as caught:
        audits.ask_sealed(b"a model", "sp", 0.5)
    assert caught.value.reason == "NO_FEATURES"
    with pytest.raises(ValueError, match="commits to nothing"):
        audits.commit(tmp_path / "asked")
    for name in public:
        assert inspect.signature(getattr(Rehearsal, name)) == inspect.signature(getattr(AuditClient, name))


@pytest.mark.check
def test_names_of_models_are_kept_wherever_an_answer_is_told(audits: AuditClient) -> None:
    """Of a mapping, of a frame's labels, and none of an array; in the order in which they were given."""
    models = {"second": DECISIONS, "a first": ~DECISIONS, "0": DECISIONS}
    answer = audits.ask(models, "sp", 0.5, threshold=0.1)
    frame = answer.frame()
    assert (answer.models, list(frame.index), frame.index.name) == (tuple(models), list(models), "model")
    assert (frame["gap"].to_numpy() == answer.gaps).all()
    assert (frame["high"].to_numpy() == answer.high).all()
    assert list(frame) == ["gap", "low", "high", "likely_low", "likely_high", "probability_above"]
    assert frame.attrs["metric"] == "sp"
    table = audits.by_group(models, ("group", "region"), 0.5)
    assert list(dict.fromkeys(table.index.get_level_values("model"))) == list(models)
    assert table.loc["a first", "a", "north"]["people"] >= 0
    assert list(audits.ask(np.stack(list(models.values())), "sp", 0.5).frame().index) == [0, 1, 2]
    axes = answer.plot()
    assert {label.get_text() for label in axes.get_yticklabels()} == set(models)
    drawn = [line.get_xdata() for line in axes.get_lines() if len(line.get_xdata()) == 3]
    assert np.array_equal(np.sort(drawn[0]), np.sort(answer.gaps))
    for wrong in ({}, {"a": [0, 1], "b": [1]}, {"a": ["x"] * PEOPLE}):
        with pytest.raises(ValueError, match="predictions"):
            audits.ask(wrong, "sp", 0.5)


@pytest.mark.check
def test_answers_cards_and_the_client_say_that_nobody_was_asked_about(audits: AuditClient) -> None:
    said = "rehearsal-of-nobody"
    answer = once(audits)
    counts = audits.count_by_group(DECISIONS, "region", 0.5, once=True)
    assert all(said in repr(one) for one in (audits, answer, counts))
    assert counts.frame().attrs["data"] == said
    assert f"on the data set {said}" in model_card(answer, "mine")


@pytest.mark.check
def test_noise_is_real_repeats_are_free_and_the_budget_ends(audits: AuditClient) -> None:
    first, again, other = once(audits), once(audits), audits.ask(DECISIONS, "sp", 0.5)
    assert first.gaps == again.gaps != other.gaps
    assert first.low[0] < first.gaps[0] < first.high[0]
    left = audits.terms().epsilon_remaining
    with pytest.raises(AuditRefused, match=r"at most 10\.0"):
        audits.ask(DECISIONS, "sp", 11.0)
    assert audits.terms().epsilon_remaining == left


@pytest.mark.check
def test_rows_give_ids_and_labels_and_a_seed_who_is_who() -> None:
    gaps = []
    for seed in (1, 1, 2):
        with AuditClient.rehearsal(
            ROWS, id="customer", label="repaid", metrics=("sp", "eo"), mechanism="laplace", epsilon=3e6, seed=seed
        ) as audits:
            shuffled = ROWS.sample(frac=1, random_state=seed)
            answer = audits.ask(shuffled["repaid"], "eo", 1e6, ids=shuffled["customer"])
            assert abs(answer.gaps[0]) < 1e-3, "whoever repaid is let in, in both groups: labels are the rows' own"
            gaps.append(audits.ask(SCORES, "sp", 1e6, ids=ROWS["customer"]).gaps[0].round(4))
            with pytest.raises(ValueError, match="ids are not those of the service's rows"):
                audits.ask(DECISIONS[1:], "sp", 1.0, ids=ROWS["customer"][1:])
    assert gaps[0] == gaps[1] != gaps[2]
    assert max(map(abs, gaps)) < 0.2, "groups have nothing to do with rows"


@pytest.mark.check
@pytest.mark.parametrize(
    ("rows", "given", "error", "said"),
    [
        (PEOPLE, {"id": "customer"}, ValueError, "rows are a number"),
        (ROWS, {"label": "income2"}, ValueError, "rows: no column 'income2'"),
        (ROWS, {"label": "customer"}, ValueError, "label 'customer': must be 0 or 1 in every row"),
        (4, {}, UserError, "no rehearsal: rows: a rehearsal needs at least 3 people of each label"),
        (PEOPLE, {"metrics": ["spp"]}, UserError, "no rehearsal: audit.metrics: must be one of sp, .*did you mean sp"),
    ],
)
def test_what_cannot_be_rehearsed_is_one_line(rows: Any, given: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said) as caught:
        AuditClient.rehearsal(rows, **given)
    assert "\n" not in str(caught.value)


PROGRAM = """
import time
from fairwall import AuditClient
audits = AuditClient.rehearsal(60)
print(audits._own._child.pid, audits._address, flush=True)
time.sleep(600)
"""


@pytest.mark.check
def test_a_program_that_is_killed_leaves_no_service_and_no_file(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True, env=os.environ | {"TMPDIR": str(tmp_path)}
    ) as program:
        assert program.stdout is not None
        pid, _ = program.stdout.readline().split()
        processes = [psutil.Process(int(pid)), *psutil.Process(int(pid)).children(recursive=True)]
        assert len(processes) >= 2
        assert list(tmp_path.iterdir())
        program.send_signal(signal.SIGKILL)
        gone, alive = psutil.wait_procs(processes, 60)
    assert (len(gone), alive) == (len(processes), [])
    assert not list(tmp_path.iterdir())
