"""A page for a class about a run: the people found out, by mechanism, epsilon and number of queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from compliance.mechanisms import MECHANISMS
from fairwall.errors import UserError
from fairwall.laws.metrics.metric import METRICS
from fairwall.laws.privacy.exposure import one_person
from sim.games.game import Line
from sim.games.reveal.columns import tables
from sim.games.reveal.scenario import RevealScenario
from sim.report.notation import as_float, number
from sim.report.page import scripted, sections
from sim.scenarios.sweep import Sweep

AXES = ("compliance.mechanism", "compliance.epsilon", "developer.queries")
_PEOPLE_MAX = 100


def lesson(sweep: Sweep, lines: Sequence[Line], summary: Sequence[Line]) -> str:
    """Return the page, from a run's sweep, the lines of its trials and their summary."""
    if not isinstance(sweep.scenario, RevealScenario) or set(sweep.scenario.axes) != set(AXES):
        raise UserError(f"a lesson is of a run of the reveal game that sweeps {', '.join(AXES)} and no more")
    mechanisms, epsilons, queries = (list(dict.fromkeys(cell.swept[axis] for cell in sweep.cells)) for axis in AXES)
    if not all(isinstance(many, int) for many in queries) or METRICS[sweep.scenario.compliance.metric].absolute:
        raise UserError("a lesson needs numbers of questions, and a metric whose gap has a sign")
    epsilons, queries = sorted(epsilons, key=as_float), sorted(queries)
    told_of = {tuple(cell[axis] for axis in AXES): cell for cell in summary}
    traces = {tuple(one[axis] for axis in AXES): one["trace"] for one in lines if "trace" in one}
    asked = list(product(mechanisms, epsilons, queries))
    if missing := [one for one in asked if one not in traces]:
        raise UserError(f"the first trial of a cell was not played: {', '.join(map(str, missing[0]))}")
    groups = {"".join(map(str, trace["group"])) for trace in traces.values()}
    data, before = sweep.scenario.data, told_of[asked[0]]
    if len(groups) > 1 or before["n"] > _PEOPLE_MAX:
        raise UserError(f"a lesson needs the same people in each first trial, {_PEOPLE_MAX} at most")

    def shown(*one: Any) -> dict[str, Any]:
        return {
            "right": told_of[one]["recovered"],
            "balanced": told_of[one]["leakage"],
            "error": number(told_of[one].get("query_error_median"), 2),
            "trials": told_of[one]["trials"],
            "guess": "".join(map(str, traces[one]["guess"])),
        }

    delta = sweep.scenario.compliance.delta
    told = {
        "groups": groups.pop(),
        "epsilons": [[number(epsilon), 100 * one_person(as_float(epsilon), delta)] for epsilon in epsilons],
        "queries": queries,
        "cells": [[[shown(name, epsilon, many) for many in queries] for epsilon in epsilons] for name in mechanisms],
    }
    (measured, *_) = tables(sweep, lines, summary)
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
        trials=len(lines),
    )
