import json

import pytest
import typer
from typer.testing import CliRunner

from sim.cli.test.privacy import privacy
from sim.privacy_audit.catalogue import PrivacyAuditError, names

app = typer.Typer()
app.command()(privacy)


def call(*words):
    return CliRunner().invoke(app, list(words), env={"COLUMNS": "80"})


def test_a_broken_twin_ends_with_status_1():
    result = call("seed-known", "--samples", "16384")
    assert result.exit_code == 1
    assert "seed-known: ACCUSED by its law and its samples" in result.stdout
    assert "exact loss" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_a_sound_mechanism_ends_with_status_0():
    result = call(
        "laplace", "--samples", "2048", "--metric", "eo", "--people", "9", "--models", "1", "--epsilon", "0.5"
    )
    assert result.exit_code == 0
    assert "not accused" in result.stdout
    assert "eo, 9 people, 1 model, epsilon 0.5" in result.stdout


def test_json_is_one_object():
    result = call("noise-reused", "--json", "--samples", "2048")
    record = json.loads(result.stdout)
    assert result.exit_code == 1
    assert record["exact"] == "inf"
    assert record["accused"] is record["accused_by_samples"] is True
    assert record["lower_bound"] > record["claimed"] == 2.0
    assert record["level"] == 1e-5


def test_samples_that_cannot_find_anything_say_so():
    result = call("sparse-once", "--epsilon", "20", "--samples", "2048", "--people", "4")
    assert result.exit_code == 0
    assert "so few samples could not find anything" in result.stdout


def test_the_list_names_everything():
    result = call("--list")
    assert result.exit_code == 0
    for kind in ("mechanism", "broken twin", "sound sibling"):
        for name in names(kind):
            assert f"  {name} " in result.stdout
    assert len(names("broken twin")) == 22
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_bad_input_is_one_line():
    for words, text in [
        ((), "name a mechanism"),
        (("nonsense",), "unknown mechanism 'nonsense'"),
        (("laplace", "--metric", "nonsense"), "unknown metric 'nonsense'"),
        (("laplace", "--metric", "di"), "di"),
        (("laplace", "--people", "2"), "at least 3 people"),
        (("laplace", "--metric", "eodds_max", "--people", "5"), "at least 6 people"),
        (("laplace", "--models", "0"), "queries"),
        (("laplace", "--batches", "0"), "batches: must be at least 1"),
        (("abs-half", "--batches", "2"), "batches"),
        (("laplace", "--epsilon", "0"), "epsilon must be above 0"),
        (("laplace", "--epsilon", "nan"), "epsilon must be above 0"),
        (("laplace", "--epsilon", "inf"), "claims no privacy"),
        (("laplace", "--delta", "1"), "delta"),
        (("abs-half", "--delta", "0.1"), "claims epsilon alone"),
        (("abs-half", "--metric", "sp"), "does not answer metric sp"),
        (("exact",), "claims no privacy"),
        (("laplace", "--level", "0"), "level"),
        (("laplace", "--samples", "100"), "samples: must be at least 1024"),
        (("laplace", "--seed", "-1"), "seed"),
    ]:
        error = call(*words).exception
        assert isinstance(error, PrivacyAuditError)
        assert text in str(error)
        assert "\n" not in str(error)


def test_a_fault_is_told_with_its_line():
    result = call("counts-low-bits", "--grey-only")
    assert result.exit_code == 1
    assert "counts-low-bits: ACCUSED by its code" in result.stdout
    assert "total = sums.sum0 + sums.sum1" in result.stdout
    assert "twins.py:" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


@pytest.mark.check
def test_faults_in_json():
    record = json.loads(call("noise-local", "--grey-only", "--json").stdout)
    assert record["accused"] is record["accused_by_code"] is True
    assert [fault["kind"] for fault in record["faults"]] == ["grid", "scale"]
    assert record["faults"][1]["cost"] == "inf"
    assert "lower_bound" not in record
    sound = json.loads(call("laplace", "--json", "--samples", "2048").stdout)
    assert (sound["faults"], sound["accused_by_code"]) == ([], False)
    assert json.loads(call("noise-fresh", "--grey-only", "--json").stdout)["faults"] is None


OWN = """
def shape(*_):
    return [1.0]
def words(*_):
    return ["a", "b"]
def fails(*_):
    return 1 / 0
class Needs:
    def __init__(self, more):
        pass
number = 3
"""


def test_one_s_own_that_cannot_be_audited(tmp_path, monkeypatch):
    for target, message in [
        ("nowhere.py:f", "nowhere.py: no such file"),
        ("own.py:nothing", "own.py: has no function or class 'nothing'"),
        ("own.py:number", "own.py: has no function or class 'number'"),
        ("own.py:Needs", "own.py:Needs cannot be loaded: TypeError"),
        ("broken.py:f", "broken.py:f cannot be loaded: SyntaxError"),
        ("no_such_module:f", "no_such_module:f cannot be loaded: ModuleNotFoundError"),
        ("own.py:shape", "own.py:shape raised ValueError: must answer with one number a model, shape (2,), not (1,)"),
        ("own.py:words", "own.py:words raised ValueError: could not convert string to float"),
        ("own.py:fails", "own.py:fails raised ZeroDivisionError: division by zero"),
    ]:
        (tmp_path / "own.py").write_text(OWN)
        (tmp_path / "broken.py").write_text("def f(:\n")
        monkeypatch.chdir(tmp_path)
        error = call(target, "--grey-only").exception
        assert isinstance(error, PrivacyAuditError)
        assert str(error).startswith(message)
        assert len(str(error).splitlines()) == 1
