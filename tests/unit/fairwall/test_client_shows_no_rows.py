"""Nothing that the client's objects and errors show is a row, a prediction or an id: a log of CI is read by many."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fairwall.client
import fairwall.tools
from fairwall.client import audit_client, by_group, rows
from fairwall.compliance.v1 import group_service_pb2
from fairwall.tools.pytest_plugin import AuditFixture
from fairwall.tools.scoring import GapScorer
from sim.deployment.certificates import write

SECRETS = ("Miller", "73519", "0.73519")
"""A name, an id and a prediction."""

TABLE = pd.DataFrame({"id": [73519, 73520], "name": ["Miller", "Meyer"], "income": [73519.0, 1.0]})


def shown(text: str) -> list[str]:
    return [secret for secret in SECRETS if secret in text]


CONFTEST = """
pytest_plugins = ["fairwall.tools.pytest_plugin"]
"""
OPTIONS = """
[tool.pytest.ini_options]
audit_address = "127.0.0.1:1"
audit_credentials = "certificates/developer-alice"
audit_epsilon = "0.5"
audit_table = "people.csv"
"""
TESTS = """
import numpy as np
import pytest

class Model:
    classes_ = (0, 1)
    feature_names_in_ = ["income"]
    def predict(self, X):
        return np.where(X["income"] > 5, 1, 0)

class Broken(Model):
    def predict(self, X):
        raise ValueError(f"could not convert {X.to_numpy()}")

def test_an_assertion(audit):
    assert audit.epsilon > 1

def test_a_method(audit):
    assert audit.gap is None

def test_no_service(audit):
    assert audit.gap("sp", Model()) < 0.1

def test_a_model_that_fails(audit, monkeypatch):
    monkeypatch.setattr(type(audit.audits), "terms", lambda _: type("Terms", (), {"rows": None}))
    assert audit.gap_at_most("sp", Broken()) < 0.1

def test_no_columns(audit, monkeypatch):
    monkeypatch.setattr(type(audit.audits), "terms", lambda _: type("Terms", (), {"rows": "ids"}))
    monkeypatch.setattr(type(audit.audits), "ask", lambda self, predictions, **more: 1 / 0)
    assert audit.gap("sp", Model(), audit.table) < 0.1
"""


def test_tests_that_fail_show_no_rows(tmp_path: Path) -> None:
    for name, text in (("conftest.py", CONFTEST), ("pyproject.toml", OPTIONS), ("test_gap.py", TESTS)):
        (tmp_path / name).write_text(text)
    TABLE.to_csv(tmp_path / "people.csv", index=False)
    write(tmp_path / "certificates", "loans", ("alice",), 1)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "-rA", "-p", "no:cacheprovider", "-p", "no:xdist"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert "5 failed" in done.stdout, done.stdout
    assert shown(done.stdout + done.stderr) == []
    assert "AuditFixture(epsilon=0.5)" in done.stdout, "which object it was is said"
    assert "127.0.0.1:1" in done.stdout, "and what went wrong"
    assert "does not predict for these rows (ValueError)" in done.stdout


MODULES = [
    f"{package.__name__}.{module.name}"
    for package in (fairwall.client, fairwall.tools)
    for module in pkgutil.iter_modules(package.__path__)
]


def test_pytest_is_told_to_hide_the_client_s_frames_with_their_arguments() -> None:
    assert MODULES
    assert [name for name in MODULES if importlib.import_module(name).__tracebackhide__ is not True] == []


def filled(kind: type, **given: object) -> object:
    """An object of a dataclass, all of whose fields hold rows but for what is given."""
    return kind(**({field.name: TABLE for field in dataclasses.fields(kind)} | given))


def test_no_repr_shows_rows() -> None:
    release = group_service_pb2.GroupRelease()
    assert shown(repr(filled(AuditFixture, epsilon=0.5))) == []
    told = {"address": "a", "credentials": "c", "metric": "sp", "epsilon": 0.1, "by": "", "response": "decisions"}
    assert shown(repr(filled(GapScorer, data=None, **told))) == []
    known = rows.KnownRows("id", ("name",), b"73519", b"Miller", 2)
    assert shown(repr(known)) == []
    bought = by_group.ByGroup(("sex",), (("m",),), ("selection_rate",), 1, release, 0.02, 0.5, 1.0, 1.0, True, "r")
    assert shown(repr(bought)) == []
    released = fairwall.client.Released(np.array([73519]), {"name": np.array(["Miller"])}, {"name": 0.5}, 0.5, 1.0)
    assert shown(repr(released)) == []


@pytest.mark.parametrize("predictions", [["0.1", "Miller"], [[73519, 1], [2]], [0.73519, float("nan")]])
@pytest.mark.parametrize("by_ids", [False, True])
def test_no_error_quotes_predictions_or_ids(predictions: Any, by_ids: bool) -> None:
    known = rows.KnownRows("id", ("name", "income"), b"0" * 32, b"1" * 32, 2)

    def ask() -> None:
        audit_client._batch(rows.arranged(predictions, [73519, 73520], None, known)[0] if by_ids else predictions)

    with pytest.raises(ValueError) as caught:  # noqa: PT011 - whatever it says, it says no row
        ask()
    assert shown(str(caught.value)) == []
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize("ids", [[73519, 73519], [73519, None], ["Miller", "Meyer"]])
def test_no_error_about_ids_quotes_one(ids: list[Any]) -> None:
    known = rows.KnownRows("id", (), b"0" * 32, b"", 2)
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        rows.arranged([0.5, 0.5], ids, None, known)
    assert shown(str(caught.value)) == []
