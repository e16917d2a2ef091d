"""A user's own mechanism: a function of a Python file, or a class, that answers about plain arrays.

It is called as ``function(predictions, labels, attributes, epsilon, noise)`` and returns one number per model; see
``privacy-audit.md`` in `docs`.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import numpy as np

from compliance.ledger.accountant import Loss, pure
from compliance.mechanisms.mechanism import BatchQuestion, Facts, Guarantee, Mechanism, MechanismAnswer
from compliance.mechanisms.promise import require_budget
from compliance.noise.sampling import Noise
from sim.privacy_audit.rows import SessionNoise


@dataclass(frozen=True)
class Foreign:
    """A function as a `Mechanism` that claims the requested epsilon and delta, for any metric."""

    function: Callable[..., Any]
    name: str
    guarantee: Guarantee = "approximate"

    @property
    def title(self) -> str:
        """See `Mechanism.title`."""
        return self.name

    def refuses(self, _metric: str, _epsilon: float, _delta: float) -> None:
        """Return None: nothing is refused."""

    def cost(self, epsilon: float, delta: float) -> Loss:
        """See `Mechanism.cost`."""
        require_budget(epsilon, delta)
        return pure(epsilon, delta)

    def release(
        self, question: BatchQuestion, _facts: Facts, epsilon: float, _delta: float, noise: Noise
    ) -> MechanismAnswer:
        """Return the function's answers; raise ValueError unless they are one number per model."""
        records = question.records
        attributes = records.turned(np.zeros(records.people, np.bool_))
        answered = self.function(question.predictions.copy(), records.labels.copy(), attributes, epsilon, noise)
        values = np.asanyarray(answered, np.float64)
        shape, due = values.shape, (question.queries,)
        if shape != due and not (isinstance(values, SessionNoise) and shape[1:] == due):
            raise ValueError(f"must answer with one number a model, shape {due}, not {shape}")
        return MechanismAnswer(values)


def load(target: str) -> Mechanism:
    """Return the function, class (called without arguments) or `Mechanism` ``FILE.py:NAME`` or ``MODULE:NAME``."""
    where, _, name = target.rpartition(":")
    if where.endswith(".py") and not Path(where).is_file():
        raise ValueError(f"{where}: no such file")
    try:
        found = getattr(_file(where) if where.endswith(".py") else importlib.import_module(where), name, None)
        found = found() if isinstance(found, type) else found
    except Exception as error:
        raise ValueError(f"{target} cannot be loaded: {type(error).__name__}: {error}".splitlines()[0]) from error
    if not callable(found) and not hasattr(found, "cost"):
        raise ValueError(f"{where}: has no function or class {name!r}")
    return cast(Mechanism, found) if hasattr(found, "cost") else Foreign(cast(Any, found), target)


def _file(path: str) -> ModuleType:
    name = f"audited_{Path(path).stem}"
    spec = importlib.util.spec_from_file_location(name, Path(path).resolve())
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
