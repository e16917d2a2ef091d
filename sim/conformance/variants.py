"""Policies of a kit that answer otherwise than ``main``: each mechanism that a policy may name, rules and precisions.

Every rule, every precision and every bounding goes with some mechanism; mechanisms do not know of rules, nor rules of
precisions, so that not every three of them have to be tried together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fairwall.laws.metric import find_metric

BATCH_DELTA = 2.0**-30
TOTAL_DELTA = 2.0**-10
"""Of a budget: a million batches' under ``basic``."""

SPENDABLE = 0.5
"""What those developers have whose share is soon spent: so little that rules which know more sell more of it."""

SHORT_OF_DELTA = "spender-29"
"""Whose delta covers five batches, where deltas add up."""


ADVANTAGED = {"advantaged": ("1",)}
"""The protected column of most, and the values of its advantaged group."""

_COLUMNS = {**ADVANTAGED, "half": ("first",)}

_FEW, _SUMS = ("sp", "abs_eo", "fpr"), ("sp", "eo", "fpr", "oad")
"""Of mechanisms that take long to say what their answers are worth."""


@dataclass(frozen=True)
class Variant:
    """One policy.

    Every batch is asked for at `batch_delta`, 0 where the mechanism needs none; `delta` is the budget's, and every
    share's. `by` has the protected columns, and the values of each one's advantaged group; `groups` says how many
    people with label 0, and with label 1, are advantaged by the first. All else is as a policy has it; all metrics that
    take scores are audited unless `metrics` names some.
    """

    mechanism: str
    rule: str = "basic"
    precision: str | int = "float64"
    bounding: str = "none"
    epsilon_max: float = 2.0**20
    batch_delta: float = 0.0
    delta: float = 0.0
    by: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: ADVANTAGED)
    people: int = 48
    groups: tuple[int, int] = field(default=(17, 4))
    minimum_group: int = 3
    metrics: tuple[str, ...] = ()
    reveal_max: float | None = 1.0

    def changed(self, policy: dict[str, Any]) -> dict[str, Any]:
        """Return a policy that is this one where this one says something."""
        audit = {name: value for name, value in policy["audit"].items() if name != "reveal_max"} | {
            "mechanism": self.mechanism,
            "precision": self.precision,
            "bounding": self.bounding,
            "epsilon_max": self.epsilon_max,
            "delta": self.batch_delta,
            **({} if self.reveal_max is None else {"reveal_max": self.reveal_max}),
        }
        budget = policy["budget"] | {"rule": self.rule, "delta": self.delta}
        metrics = list(self.metrics) or [metric for metric in audit["metrics"] if not find_metric(metric).binary]
        developers = {
            name: {"epsilon": SPENDABLE if name.startswith("spender") else share["epsilon"], "delta": self.delta}
            for name, share in policy["developers"].items()
        }
        if self.rule == "basic" and self.batch_delta:
            developers[SHORT_OF_DELTA]["delta"] = 5 * self.batch_delta
        kept = {name: section for name, section in policy.items() if name != "release"}
        kept["data"] = policy["data"] | {"minimum_group": self.minimum_group}
        if self.by != ADVANTAGED:
            alone = ("protected", "advantaged", "disadvantaged")
            kept["data"] = {name: value for name, value in kept["data"].items() if name not in alone}
            kept["data"]["protected"] = {name: list(values) for name, values in self.by.items()}
        return kept | {"audit": audit | {"metrics": metrics}, "budget": budget, "developers": developers}


VARIANTS: dict[str, Variant] = {
    "decimals": Variant("laplace", rule="advanced", precision=3, bounding="clamp", delta=2.0**-20),
    "truncated": Variant("laplace", rule="zcdp", bounding="truncate", delta=2.0**-20),
    "gaussian": Variant("gaussian", rule="tight", batch_delta=BATCH_DELTA, delta=TOTAL_DELTA),
    "conceal": Variant("conceal", precision="float32"),
    "conceal-laplace": Variant(
        "conceal-laplace",
        epsilon_max=0.75,
        batch_delta=BATCH_DELTA,
        delta=TOTAL_DELTA,
        people=600,
        groups=(200, 180),
        minimum_group=36,
    ),
    "cauchy": Variant("cauchy", precision=6, bounding="boundary-inflate"),
    "counts": Variant("counts", metrics=_SUMS),
    "counts-gaussian": Variant(
        "counts-gaussian",
        rule="zcdp",
        precision="float32",
        batch_delta=BATCH_DELTA,
        delta=TOTAL_DELTA,
        metrics=_SUMS,
    ),
    "cube": Variant("cube", metrics=_SUMS),
    "cells": Variant("cells", people=96, groups=(30, 20), metrics=_FEW),
    "limited": Variant(
        "cells", people=96, groups=(26, 26), minimum_group=40, epsilon_max=8.0, metrics=("sp",), reveal_max=None
    ),
    "low-rank": Variant("low-rank", metrics=_SUMS),
    "randomized-response": Variant("randomized-response"),
    "sparse-vector": Variant("sparse-vector"),
    "exponential": Variant("exponential", rule="advanced", delta=2.0**-20),
    "sample-and-aggregate": Variant("sample-and-aggregate", people=96, groups=(30, 20), precision=9),
    # With any larger minimum there is nothing to test.
    "propose-test-release": Variant(
        "propose-test-release", batch_delta=BATCH_DELTA, delta=TOTAL_DELTA, minimum_group=1
    ),
    # By the first column the least group has 11 people with a label, by the second one 8.
    "columns": Variant("laplace", by=_COLUMNS, people=56, groups=(14, 11), metrics=_FEW),
    "columns-cells": Variant("cells", by=_COLUMNS, people=96, groups=(30, 20), metrics=("sp", "eo", "fpr")),
    "recommended": Variant("recommended", epsilon_max=2.0**10, metrics=_FEW),
    "recommended-mirror": Variant("recommended", epsilon_max=2.0**10, groups=(8, 19), metrics=_FEW),
}
"""By the deployment's name."""
