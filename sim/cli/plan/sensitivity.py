"""The command ``fairwall plan sensitivity``: the largest effect of one person's protected attribute on a metric."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from fairwall.errors import did_you_mean, nearest
from sim.cli.common import BAD_INPUT

_COUNT_MAX = 2**53
_TWO, _FOUR = ("n0", "n1"), ("n00", "n01", "n10", "n11")
_KEYS = ("metric", *_TWO, *_FOUR, "beta", "queries", "scores", "may_be_empty", "minimum_group")


def sensitivity(
    metric: Annotated[str | None, typer.Option(help="The metric's key, for example sp, abs_eo or eodds_max.")] = None,
    n0: Annotated[int | None, typer.Option(help="Disadvantaged people in the metric's stratum.")] = None,
    n1: Annotated[int | None, typer.Option(help="Advantaged people in the metric's stratum.")] = None,
    n00: Annotated[int | None, typer.Option(help="Disadvantaged people with label 0.")] = None,
    n01: Annotated[int | None, typer.Option(help="Advantaged people with label 0.")] = None,
    n10: Annotated[int | None, typer.Option(help="Disadvantaged people with label 1.")] = None,
    n11: Annotated[int | None, typer.Option(help="Advantaged people with label 1.")] = None,
    beta: Annotated[float | None, typer.Option(help="Smoothness, at least 0; for the smooth sensitivity.")] = None,
    models: Annotated[int, typer.Option(help="How many models are asked about; multiplies everything.")] = 1,
    scores: Annotated[
        bool | None, typer.Option("--scores/--binary", help="Predictions are scores in [0, 1], or 0 or 1.")
    ] = None,
    may_be_empty: Annotated[
        bool, typer.Option("--may-be-empty", help="Allow empty groups; the gap is then 0.")
    ] = False,
    minimum_group: Annotated[
        int, typer.Option(help="How many people neighbours have of each group, at least; public.")
    ] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
    jsonl: Annotated[
        bool, typer.Option("--jsonl", help="Answer JSON objects from standard input, one a line.")
    ] = False,
) -> None:
    """Tell how far one person's group can move a metric. Its local, global and smooth sensitivity."""
    given: dict[str, Any] = {"metric": metric, "n0": n0, "n1": n1, "n00": n00, "n01": n01, "n10": n10, "n11": n11}
    given |= {"beta": beta, "queries": models, "scores": scores, "may_be_empty": may_be_empty}
    given["minimum_group"] = minimum_group
    if jsonl:
        if as_json or given != dict.fromkeys(_KEYS) | {"queries": 1, "may_be_empty": False, "minimum_group": 1}:
            raise typer.BadParameter("takes every setting from standard input", param_hint="--jsonl")
        raise typer.Exit(_answer_lines())
    try:
        question = SensitivityQuestion.read(given)
        answer = question.answer()
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    typer.echo(json.dumps(_plain(answer), allow_nan=False) if as_json else _table(question, answer))


@dataclass(frozen=True)
class SensitivityQuestion:
    """One question about a metric's sensitivity, with counts n0 and n1, or n00, n01, n10 and n11."""

    metric: str
    counts: Mapping[str, int]
    beta: float | None
    queries: int
    scores: bool
    may_be_empty: bool
    minimum_group: int

    @classmethod
    def read(cls, given: object) -> SensitivityQuestion:
        """Read and check a question; absent and null are the same. ValueError in one line that names the key."""
        from fairwall.laws.metrics.metric import METRICS, find_metric

        if not isinstance(given, dict):
            raise ValueError("a question is a JSON object")
        for key in given:
            if key not in _KEYS:
                raise ValueError(f"unknown key {key!r}{did_you_mean(nearest(key, _KEYS))}")
        given = {key: value for key, value in given.items() if value is not None}
        metric = given.get("metric")
        if not isinstance(metric, str):
            raise ValueError(f"metric: choose one of: {', '.join(METRICS)}")
        found = find_metric(metric)
        scores = _boolean(given, "scores", not found.binary)
        if found.binary and scores:
            raise ValueError(f"scores: metric {metric} needs binary predictions, each 0 or 1")
        return cls(
            found.name,
            _counts(given, two_strata=len(found.strata) > 1),
            _beta(given),
            _whole(given, "queries", least=1) if "queries" in given else 1,
            scores,
            _boolean(given, "may_be_empty", False),
            _whole(given, "minimum_group", least=1) if "minimum_group" in given else 1,
        )

    def answer(self) -> dict[str, float | None]:
        """Return all queries' sensitivities, maybe infinite, smooth None without beta; ValueError for a small group."""
        from fairwall.laws.metrics.sensitivity import LabelGroupCounts, sensitivities

        counts = (
            LabelGroupCounts(**self.counts)
            if len(self.counts) == len(_FOUR)
            else (self.counts["n0"], self.counts["n1"])
        )
        try:
            found = sensitivities(
                self.metric,
                counts,
                self.beta,
                scores=self.scores,
                may_be_empty=self.may_be_empty,
                minimum_group=self.minimum_group,
            )
        except ValueError as error:
            raise ValueError(f"metric {self.metric}: {error}") from None
        values = {"local": found.local, "global": found.overall, "smooth": found.smooth}
        return {key: None if value is None else self.queries * value for key, value in values.items()}


def _counts(given: Mapping[str, object], *, two_strata: bool) -> dict[str, int]:
    two, four = ([key for key in keys if key in given] for keys in (_TWO, _FOUR))
    if two and four:
        raise ValueError("counts: give n0 and n1, or n00, n01, n10 and n11, not some of both")
    keys = _FOUR if four or two_strata else _TWO
    missing = [key for key in keys if key not in given]
    if missing:
        why = f"metric {given['metric']} looks at both labels; " if two_strata else ""
        raise ValueError(f"counts: {why}missing {', '.join(missing)}")
    return {key: _whole(given, key, least=0) for key in keys}


def _whole(given: Mapping[str, object], key: str, least: int) -> int:
    value = given[key]
    # A boolean is an int in Python, but not in the question.
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{key} must be a whole number, not {json.dumps(value)}")
    if not (least <= value <= _COUNT_MAX and value == int(value)):
        raise ValueError(f"{key} must be a whole number in {least} .. 2^53")
    return int(value)


def _beta(given: Mapping[str, object]) -> float | None:
    value = given.get("beta")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= sys.float_info.max:
        raise ValueError("beta must be a finite number of at least 0")
    return float(value)


def _boolean(given: Mapping[str, object], key: str, default: bool) -> bool:
    value = given.get(key, default)
    if not isinstance(value, bool):
        raise ValueError(f"{key} must be true or false, not {json.dumps(value)}")
    return value


def _answer_lines() -> int:
    """Answer standard input line by line; return the exit status."""
    status = 0
    for line in sys.stdin.buffer:
        if not line.strip():
            continue
        answer: dict[str, Any]
        try:
            answer = _plain(SensitivityQuestion.read(_parse(line)).answer())
        except ValueError as error:
            answer, status = {"error": str(error)}, BAD_INPUT
        typer.echo(json.dumps(answer, allow_nan=False))
    return status


def _parse(line: bytes) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not a line of JSON: {error}") from None


def _plain(answer: Mapping[str, float | None]) -> dict[str, float | str | None]:
    return {key: "inf" if value == math.inf else value for key, value in answer.items()}


def _table(question: SensitivityQuestion, answer: Mapping[str, float | None]) -> str:
    counts = ", ".join(f"{key} = {count}" for key, count in question.counts.items())
    predictions = "scores in [0, 1]" if question.scores else "binary predictions"
    lines = [f"{question.metric}, {counts}, {predictions}"]
    many = question.queries > 1
    lines.append(f"{'':18}{'one query':>14}" + (f"{f'{question.queries} queries':>18}" if many else ""))
    for key, value in answer.items():
        if value is None:
            continue
        name = f"smooth, beta {question.beta:g}" if key == "smooth" else key
        lines.append(f"{name:18}{value / question.queries:14.8g}" + (f"{value:18.8g}" if many else ""))
    return "\n".join([*lines, "", *(f"{name:9} {formula}" for name, formula in _formulas(question))])


def _formulas(question: SensitivityQuestion) -> list[tuple[str, str]]:
    from fairwall.laws.metrics.metric import METRICS

    metric = METRICS[question.metric]
    if not metric.bounded:
        return [("formula", "none: one person can empty the denominator")]
    if metric.binary:
        labels = "; 1/2 where the groups differ by label, 0 for one label" if len(question.counts) == len(_FOUR) else ""
        return [("formula", f"1{labels}")]
    if not metric.absolute:
        flip = "1/s + 1/u"
    elif question.scores:
        flip = "(1/s + 1/u) n/(n+1)"
    else:
        flip = "1/s + 1/u - min(c(u-1, s)/(u(u-1)), c(s-1, u)/(s(s-1)))"
    formulas = [("flip(s)", flip), ("u", "n + 1 - s, of n people in the stratum")]
    if "c(" in flip:
        formulas.append(("c(x, y)", "x / y, rounded up"))
    least = question.minimum_group
    local = f"the larger of flip(n0) and flip(n1) that leaves {least} or more"
    largest = (
        f"flip({least + 1})" if question.scores or least == 1 else f"the largest flip(s), s = {least + 1} .. n-{least}"
    )
    if question.may_be_empty:
        local, largest = "1 if n0 or n1 is at most 1, else the larger of flip(n0) and flip(n1)", "1"
    formulas += [("local", local), ("global", largest)]
    if question.beta is not None:
        formulas.append(("smooth", "max over k of exp(-beta k) times local, k flips away"))
    if len(metric.strata) > 1:
        formulas.append(("strata", "two; of each value the larger"))
    return formulas
