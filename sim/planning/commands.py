"""Commands of fairwall that try a recommendation on the table that it is about."""

from __future__ import annotations

import json
from collections.abc import Iterator

from fairwall import toml
from fairwall.tables.values import several
from sim.planning.situation import Situation

Command = tuple[str, ...]
"""The words of a command line, ``fairwall`` first."""

TRAINING = "mitigations"
"""The scenario that plays each practice of private and fair training."""

AUDIT = "reveal-adult-100"
"""The scenario that asks compliance about gaps, with any mechanism."""

_TEST_MAX, _PART, _LEAST = 100, 4, 40
_MODELS = 10


def plan(seen: Situation, epsilon: float) -> Command:
    """Return the `fairwall plan audit` command for the same question at another epsilon."""
    asked = vars(seen.columns)
    options = {"data": asked["source"], **asked, "epsilon": f"{epsilon:g}", "within": f"{seen.within:g}"}
    options.pop("source")
    words = (f"--{name}={value}" for name, values in options.items() for value in several(values))
    return ("fairwall", "plan", "audit", *words)


def training_run(seen: Situation | None, epsilon: float, **training: str) -> Command:
    """Return the command that plays a practice, or a model, in the training game."""
    settings = [
        *(f"training.{key}={_spelled(value)}" for key, value in training.items()),
        f"training.epsilon={epsilon:g}",
    ]
    return _run(TRAINING, [*settings, *([] if seen is None else _table(seen))])


def mechanism_run(seen: Situation | None, epsilon: float, mechanism: str) -> Command:
    """Return the command that asks compliance about ten models, on part of the table; on Adult for a small table."""
    settings = [f"compliance.mechanism={mechanism}", f"compliance.epsilon={epsilon:g}"]
    settings += ["compliance.delta=1e-6"] if mechanism == "propose-test-release" else []
    settings += ["developer.strategy=best", f"developer.queries={_MODELS}"]
    if seen is not None and seen.people >= _LEAST:
        size = min(_TEST_MAX, seen.people // _PART)
        few = min(max(1, round(size * seen.sizes[0] / seen.people)), size - 1)
        settings += [*_table(seen), f"data.test_size={size}", f"data.n0={few}"]
    return _run(AUDIT, settings)


def _run(scenario: str, settings: list[str]) -> Command:
    return ("fairwall", "run", scenario, *(f"--set={setting}" for setting in settings))


def _table(seen: Situation) -> Iterator[str]:
    roles = seen.table.roles
    values = {
        "source": seen.columns.source,
        "protected": roles.protected,
        "advantaged": roles.advantaged,
        "disadvantaged": roles.disadvantaged,
        "label": roles.label,
        "positive": roles.positive,
        "negative": roles.negative,
    }
    return (f"data.{key}={_spelled(value)}" for key, value in values.items() if value is not None)


def _spelled(value: str | tuple[str, ...]) -> str:
    """Return a text or several as `--set` reads them, quoted where TOML would read another type."""
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    try:
        toml.loads(f"value = {value}")
    except toml.TomlError:
        if value == value.strip():
            return value
    return json.dumps(value, ensure_ascii=False)
