"""Checks that a scenario can be played, as far as they do not depend on the game."""

from __future__ import annotations

import math
from collections.abc import Iterator

from compliance.mechanisms import find_mechanism
from compliance.mechanisms.bounding import bounded
from fairwall.errors import did_you_mean, nearest
from fairwall.rpc.confine import LAYERS
from sim.scenarios.scenario import Scenario


def common_problems(scenario: Scenario) -> Iterator[str]:
    """Yield problems of a scenario of any game."""
    for name in scenario.scenario.require:
        if name not in LAYERS:
            hint = did_you_mean(nearest(name, LAYERS))
            yield f"scenario.require: must be among {', '.join(LAYERS)}, not {name!r}{hint}"
    steps = scenario.steps()
    for fault in scenario.faults.at if scenario.faults is not None else ():
        if fault.step is not None and fault.step not in steps:
            hint = did_you_mean(nearest(fault.step, steps))
            yield f"faults.at: a trial of this scenario has the steps {', '.join(steps)}, not {fault.step!r}{hint}"


def mechanism_problems(scenario: Scenario) -> Iterator[str]:
    """Yield problems of the mechanism with the scenario's policy."""
    compliance = scenario.compliance
    name = compliance.mechanism
    mechanism = find_mechanism(name)
    if mechanism.guarantee == "none" and not math.isinf(scenario.epsilon):
        yield f'compliance.epsilon: mechanism {name} adds no noise, so it must be "inf", not {compliance.epsilon:,g}'
    if mechanism.guarantee != "none" and compliance.epsilon is None:
        yield f'compliance.epsilon: is missing; mechanism {name} needs a positive number or "inf"'
    try:
        refusal = bounded(mechanism, compliance.bounding).refuses(
            compliance.metric, scenario.epsilon, scenario.batch_delta
        )
    except ValueError as error:
        yield f"compliance.bounding: {error}"
        return
    if refusal is not None:
        yield f"compliance.mechanism: {name} does not answer {compliance.metric}: {refusal}"
