"""The command ``fairwall plan sensitivity``: its answers, its refusals, its lines."""

from __future__ import annotations

import itertools
import json
import math
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from fairwall.laws.metrics.metric import METRICS
from fairwall.laws.metrics.sensitivity import LabelGroupCounts, sensitivities
from sim.cli.plan.sensitivity import sensitivity

app = typer.Typer(rich_markup_mode=None)
app.command()(sensitivity)


def call(arguments: str, stdin: str | bytes = "") -> tuple[int, str, str]:
    done = CliRunner().invoke(app, arguments.split(), input=stdin)
    return done.exit_code, done.stdout, done.stderr


def answers(*questions: Any) -> list[dict[str, Any]]:
    status, out, err = call("--jsonl", stdin="".join(json.dumps(question) + "\n" for question in questions))
    assert (status, err) == (0, "")
    return [json.loads(line) for line in out.splitlines()]


def refusal(question: Any) -> str:
    status, out, err = call("--jsonl", stdin=json.dumps(question) + "\n")
    assert (status, err) == (2, "")
    (answer,) = map(json.loads, out.splitlines())
    assert list(answer) == ["error"]
    return str(answer["error"])


def test_the_table_of_one_metric() -> None:
    status, out, err = call("--metric sp --n0 10 --n1 90 --beta 0.01 --models 25")
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "sp, n0 = 10, n1 = 90, scores in [0, 1]"
    assert lines[1].split() == ["one", "query", "25", "queries"]
    assert lines[2].split() == ["local", "0.11098901", "2.7747253"]
    assert lines[3].split() == ["global", "0.51010101", "12.752525"]
    assert lines[4].split() == ["smooth,", "beta", "0.01", "0.47088258", "11.772065"]


def test_a_table_fits_eighty_columns() -> None:
    options = ("", "--beta 0.5 --models 1000000", "--may-be-empty --beta 1e-05", "--binary")
    for metric, asked in zip(METRICS, itertools.cycle(options), strict=False):
        status, out, err = call(f"--metric {metric} --n00 4000 --n01 30000 --n10 2000 --n11 9000 {asked}")
        assert (status, err) == (0, "")
        assert max(map(len, out.splitlines())) <= 80
        assert ("smooth" in out) == ("--beta" in asked)


def test_one_json_object() -> None:
    status, out, _ = call("--metric abs_eo --n0 3 --n1 4 --json")
    assert status == 0
    assert json.loads(out) == {"local": 7 / 15, "global": 7 / 12, "smooth": None}


def test_lines_agree_with_the_laws() -> None:
    questions, expected = [], []
    cells = [(1, 2, 3, 4), (5, 1, 1, 2), (2, 2, 2, 2)]
    for metric, counts, beta, scores in itertools.product(METRICS, cells, (None, 0, 0.3), (True, False)):
        if METRICS[metric].binary and scores:
            continue
        keys = dict(zip(("n00", "n01", "n10", "n11"), counts, strict=True))
        questions.append({"metric": metric, **keys, "beta": beta, "scores": scores})
        law = sensitivities(metric, LabelGroupCounts(*counts), beta, scores=scores)
        values = {"local": law.local, "global": law.overall, "smooth": law.smooth}
        expected.append({key: "inf" if value == math.inf else value for key, value in values.items()})
    assert answers(*questions) == expected


def test_two_counts_are_those_of_the_metric_s_stratum() -> None:
    for metric, groups in [("sp", (4, 6)), ("eo", (3, 4)), ("abs_fpr", (1, 2)), ("oad", (4, 6))]:
        four = {"metric": metric, "n00": 1, "n01": 2, "n10": 3, "n11": 4, "beta": 0.1}
        two = {"metric": metric, "n0": groups[0], "n1": groups[1], "beta": 0.1}
        first, second = answers(four, two)
        assert first == second


def test_queries_multiply_everything() -> None:
    asked = {"metric": "sp", "n0": 3, "n1": 9, "beta": 0.1}
    one, many = answers(asked, asked | {"queries": 25})
    assert many == {key: 25 * value for key, value in one.items()}


def test_predictions_are_scores_unless_the_metric_needs_binary_ones() -> None:
    asked = {"metric": "abs_sp", "n0": 3, "n1": 4}
    unsaid, scores, binary = answers(asked, asked | {"scores": True}, asked | {"scores": False})
    assert unsaid == scores != binary
    assert answers({"metric": "ppv", "n0": 3, "n1": 4}) == [{"local": 1.0, "global": 1.0, "smooth": None}]


def test_disparate_impact_is_infinite() -> None:
    asked = {"metric": "di", "n0": 3, "n1": 4}
    assert answers(asked, asked | {"beta": 0, "queries": 3}) == [
        {"local": "inf", "global": "inf", "smooth": None},
        {"local": "inf", "global": "inf", "smooth": "inf"},
    ]


def test_groups_of_at_least_a_minimum_move_a_metric_less() -> None:
    asked = {"metric": "sp", "n0": 104, "n1": 896, "minimum_group": 20}
    (found,) = answers(asked)
    assert (found["local"], found["global"]) == (pytest.approx(1 / 104 + 1 / 897), pytest.approx(1 / 21 + 1 / 980))
    assert "at least 105" in refusal(asked | {"minimum_group": 105})
    assert "minimum_group must be a whole number in 1" in refusal(asked | {"minimum_group": 0})
    assert "has no minimum" in refusal(asked | {"may_be_empty": True})
    status, out, _ = call("--metric abs_sp --n0 104 --n1 896 --minimum-group 20 --binary")
    assert status == 0
    assert "global    the largest flip(s), s = 21 .. n-20" in out


def test_an_empty_group_is_an_error_unless_it_may_be_empty() -> None:
    asked = {"metric": "sp", "n0": 0, "n1": 4}
    assert "metric sp: each group must have a whole number of people, at least 1" in refusal(asked)
    assert answers(asked | {"may_be_empty": True}) == [{"local": 1.0, "global": 1.0, "smooth": None}]
    status, out, err = call("--metric sp --n0 0 --n1 4")
    assert (status, out) == (2, "")
    assert "at least 1" in err


def test_what_is_wrong_is_named() -> None:
    for question, named in [
        ({"metric": "eodds_max", "n0": 3, "n1": 4}, "missing n00, n01, n10, n11"),
        ({"metric": "eodds_sum", "n00": 3, "n11": 4}, "missing n01, n10"),
        ({"metric": "sp", "n0": 3}, "missing n1"),
        ({"metric": "sp"}, "missing n0, n1"),
        ({"metric": "sp", "n0": 3, "n1": 4, "n00": 1}, "n0 and n1, or n00, n01, n10 and n11"),
        ({"metric": "spp", "n0": 3, "n1": 4}, "unknown metric 'spp'"),
        ({"metric": ["sp"], "n0": 3, "n1": 4}, "metric: choose one of: sp, abs_sp"),
        ({"n0": 3, "n1": 4}, "metric: choose one of: sp, abs_sp"),
        ({"metric": "ppv", "n0": 3, "n1": 4, "scores": True}, "scores: metric ppv needs binary predictions"),
        ({"metric": "sp", "n0": 3, "n1": 4, "scroes": True}, "unknown key 'scroes'; did you mean scores?"),
        ({"metric": "sp", "n0": 3, "n1": 4, "scores": 1}, "scores must be true or false, not 1"),
        ({"metric": "sp", "n0": True, "n1": 4}, "n0 must be a whole number, not true"),
        ({"metric": "sp", "n0": "3", "n1": 4}, 'n0 must be a whole number, not "3"'),
        ({"metric": "sp", "n0": 2.5, "n1": 4}, "n0 must be a whole number"),
        ({"metric": "sp", "n0": -1, "n1": 4}, "n0 must be a whole number"),
        ({"metric": "sp", "n0": math.nan, "n1": 4}, "n0 must be a whole number"),
        ({"metric": "sp", "n0": 10**400, "n1": 4}, "n0 must be a whole number"),
        ({"metric": "sp", "n0": 3, "n1": 4, "queries": 0}, "queries must be a whole number in 1"),
        ({"metric": "sp", "n0": 3, "n1": 4, "beta": -1}, "beta must be a finite number"),
        ({"metric": "sp", "n0": 3, "n1": 4, "beta": math.inf}, "beta must be a finite number"),
        ({"metric": "sp", "n0": 3, "n1": 4, "beta": "0.1"}, "beta must be a finite number"),
        ([1, 2], "a question is a JSON object"),
    ]:
        text = refusal(question)
        assert named in text
        assert "\n" not in text


def test_a_bad_line_does_not_stop_the_others() -> None:
    good = b'{"metric": "sp", "n0": 3, "n1": 4}\n'
    lines = [good, b"{\n", b"\n", b"\xff\xfe\n", b"[" * 100_000 + b"\n", good.strip()]
    status, out, err = call("--jsonl", stdin=b"".join(lines))
    assert (status, err) == (2, "")
    found = [list(json.loads(line)) for line in out.splitlines()]
    assert found == [["local", "global", "smooth"], ["error"], ["error"], ["error"], ["local", "global", "smooth"]]


def test_nothing_in_nothing_out() -> None:
    assert call("--jsonl") == (0, "", "")


def test_lines_take_every_setting_from_the_line() -> None:
    for arguments in ["--jsonl --metric sp", "--jsonl --json", "--jsonl --models 2"]:
        status, _, err = call(arguments)
        assert status == 2
        assert "takes every setting from standard input" in err


def test_a_large_stratum_is_no_slower() -> None:
    large = {"metric": "abs_sp", "n0": 2**52, "n1": 2**52 + 12345, "scores": False}
    for beta in (0, 1e-15, 1e-9, 1.0):
        (answer,) = answers(large | {"beta": beta})
        assert 0 < answer["local"] <= answer["smooth"] <= answer["global"] == pytest.approx(0.5)
