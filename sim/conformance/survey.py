"""The kind of step that requests many unlike batches, and tests whether their noise depends on anything.

Requests vary in everything at once: caller, metric, models, epsilon, kind of predictions, threshold, chunks,
connection, deployment, restarts; see `sim.conformance.independence_checks`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from pydantic import Field

from fairwall.laws.metrics.metric import find_metric
from fairwall.rpc import arrays
from sim.conformance.audits import AuditStep
from sim.conformance.by_group import ByGroupStep
from sim.conformance.independence_checks import AnsweredBatch, require_nothing_depends
from sim.conformance.purchases import PurchaseStep
from sim.conformance.services import on
from sim.conformance.step_base import Number, Predictions, Words
from sim.conformance.world import CaseState, NotRun

_KINDS: dict[str, dict[str, Any]] = {
    "scores": {},
    "float32": {"kind": "float32"},
    "decisions": {"decisions": 0, "kind": "uint8"},
    "alike": {"fill": 0.5},
    "ones": {"fill": 1},
    "advantaged": {"group": "advantaged"},
    "disadvantaged": {"group": "disadvantaged"},
}
"""Kinds of predictions, as fields of `Predictions`; seeds are drawn."""

_DECIDED = ("selection_rate", "true_positive_rate", "false_positive_rate", "accuracy")
_SCORED = ("mean_score", "scoring_rate")
_HALF = 0.5


class Survey(Words):
    """A step that requests many batches, and tests all their noise together.

    `requests` are about several models, and `singles` about one. Requests are drawn from `seed`, the same in every run:
    from all allowed metrics by default, and from `kinds` of predictions. With `thresholds` some have one.
    """

    do: Literal["survey"]
    requests: int = Field(default=100, ge=0)
    singles: int = Field(default=0, ge=0)
    seed: int = 1
    callers: tuple[str, ...] = ("developer", "other")
    deployments: tuple[str, ...] = ("",)
    metrics: tuple[str, ...] = ()
    models: tuple[Number, ...] = (2, 3, 5, 8, 20, 50, 100, 129, 150, 200, 257, 399)
    epsilons: tuple[Number, ...] = ("unit", 1, 8, 1024)
    kinds: tuple[str, ...] = tuple(_KINDS)
    thresholds: bool = True

    def run(self, world: CaseState) -> None:
        """Request answers, and test their noise."""
        about, rng = world.about(), np.random.default_rng(self.seed)
        for number in range(self.requests + self.singles):
            audit, kind = self._audit(world, rng, number)
            step: PurchaseStep | None = on(world.service, audit)
            if step is None:
                continue
            if isinstance(step, ByGroupStep):
                step = self._counted(world, rng, step)
            step.run(world)
            result = world.results.pop(step.name)
            if result.uniform is None or result.exact is None:
                raise NotRun("needs the table of the test set, and a mechanism whose law the tester knows")
            if np.isnan(result.uniform).any():  # no answer
                continue
            asked = {
                "caller": step.caller,
                "deployment": step.deployment,
                "metric": ", ".join(step.measures or ()) if isinstance(step, ByGroupStep) else audit.metric,  # type: ignore[arg-type]
                "by": step.by if isinstance(step, ByGroupStep) else (),
                "models": audit.predictions.models,
                "epsilon": str(step.epsilon),
                "kind": kind,
                "threshold": audit.threshold is not None,
                "chunks": audit.chunk_bytes,
                "connection": step.another_connection,
                "step": world.step,
                "since start": min(number, 3),
            }
            gridded = world.service == "audit" and about.precision == "float64" and about.bounding == "none"
            answers = result.exact if result.noise is None or result.discrete else result.noise + result.exact
            if gridded:  # to the last bit
                answers = arrays.from_message(result.seen.messages[0].gaps).astype(np.float64)
            world.surveyed.append(AnsweredBatch(asked, 2 * result.uniform - 1, result.exact, answers, gridded))
        require_nothing_depends(world.surveyed)

    def _counted(self, world: CaseState, rng: np.random.Generator, step: ByGroupStep) -> ByGroupStep:
        """Draw the columns to count by, and the measures."""
        names = list(world.about().groups)
        of = _DECIDED if step.predictions.are_decisions else _SCORED
        by = [name for name in names if rng.random() < _HALF] or [names[int(rng.integers(len(names)))]]
        measures = [name for name in of if rng.random() < _HALF] or [of[int(rng.integers(len(of)))]]
        return step.model_copy(update={"by": tuple(by), "measures": tuple(measures)})

    def _audit(self, world: CaseState, rng: np.random.Generator, number: int) -> tuple[AuditStep, str]:
        """Draw the next request, and its kind of predictions."""

        def one_of(choices: Sequence[Any]) -> Any:
            return choices[int(rng.integers(len(choices)))]

        kind, metric = one_of(self.kinds), one_of(self.metrics or world.about().metrics)
        kind = "decisions" if find_metric(metric).binary else kind
        models = 1 if number >= self.requests else one_of(self.models)
        predictions = {"models": models, "random": int(rng.integers(1 << 30)), **_KINDS[kind]}
        if "decisions" in predictions:
            predictions["decisions"] = predictions["random"]
        name = f"survey-{world.step}-{number}"
        audit = AuditStep(
            do="audit",
            name=name,
            id=name,
            caller=one_of(self.callers),
            deployment=one_of(self.deployments),
            metric=metric,
            epsilon=one_of(self.epsilons),
            threshold=0.1 if self.thresholds and not find_metric(metric).binary and rng.random() < 0.1 else None,
            chunk_bytes=one_of((1 << 20, 1 << 20, 1 << 20, 4096)),
            another_connection=bool(rng.random() < 0.05),
            predictions=Predictions.model_validate(predictions),
        )
        return audit, kind
