"""A page for a class, of a run of the reveal game: who is found out, by mechanism, epsilon and number of questions."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from compliance.mechanisms import MECHANISMS
from fairwall.errors import UserError
from fairwall.laws.exposure import one_person
from fairwall.laws.metric import METRICS
from sim.games import GAMES, read
from sim.report.notation import as_float, number
from sim.report.page import scripted, sections
from sim.runs.trials import read_trials, summarise

AXES = ("compliance.mechanism", "compliance.epsilon", "developer.queries")
_PEOPLE_MAX = 100


def lesson(folder: Path) -> str:
    """Write the page: the same bytes for the same run.

    Raises
    ------
    UserError
        If it is no run that a lesson can be made of.
    """
    if not (folder / "scenario.toml").is_file():
        raise UserError(f"{folder}: not a run's folder: it has no scenario.toml")
    sweep = read(str(folder / "scenario.toml"))
    if sweep.game != "reveal" or set(sweep.scenario.axes) != set(AXES):
        raise UserError(f"{folder}: a lesson is of a run of the reveal game that sweeps {', '.join(AXES)} and no more")
    mechanisms, epsilons, queries = (list(dict.fromkeys(cell.swept[axis] for cell in sweep.cells)) for axis in AXES)
    if not all(isinstance(many, int) for many in queries) or METRICS[sweep.scenario.compliance.metric].absolute:
        raise UserError(f"{folder}: a lesson needs numbers of questions, and a metric whose gap has a sign")
    epsilons, queries = sorted(epsilons, key=as_float), sorted(queries)
    trials = read_trials(folder / "trials.jsonl")
    summary = {tuple(cell[axis] for axis in AXES): cell for cell in summarise(sweep, trials)}
    traces = {tuple(one[axis] for axis in AXES): one["trace"] for one in trials if "trace" in one}
    asked = list(product(mechanisms, epsilons, queries))
    if missing := [one for one in asked if one not in traces]:
        raise UserError(f"{folder}: the first trial of a cell was not played: {', '.join(map(str, missing[0]))}")
    groups = {"".join(map(str, trace["group"])) for trace in traces.values()}
    data, before = sweep.scenario.data, summary[asked[0]]
    if len(groups) > 1 or before["n"] > _PEOPLE_MAX:
        raise UserError(f"{folder}: a lesson needs the same people in each first trial, {_PEOPLE_MAX} at most")

    def shown(*one: Any) -> dict[str, Any]:
        return {
            "right": summary[one]["recovered"],
            "balanced": summary[one]["leakage"],
            "error": number(summary[one].get("query_error_median"), 2),
            "trials": summary[one]["trials"],
            "guess": "".join(map(str, traces[one]["guess"])),
        }

    delta = sweep.scenario.compliance.delta
    told = {
        "groups": groups.pop(),
        "epsilons": [[number(epsilon), 100 * one_person(as_float(epsilon), delta)] for epsilon in epsilons],
        "queries": queries,
        "cells": [[[shown(name, epsilon, many) for many in queries] for epsilon in epsilons] for name in mechanisms],
    }
    (measured, *_) = GAMES["reveal"].tables(sweep, trials, list(summary.values()))
    return scripted(
        "lesson.html.j2",
        "lesson.js",
        told,
        attribute=data.protected or "group",
        names=(data.disadvantaged or "group 0", data.advantaged or "group 1"),
        people=before["n"],
        before=before["baseline_leakage"],
        mechanisms=[MECHANISMS[name].title for name in mechanisms],
        epsilons=len(epsilons),
        queries=len(queries),
        measured=sections([replace(measured, linked=False)], {}),
        scenario=sweep.scenario,
        trials=len(trials),
    )
