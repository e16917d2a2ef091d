"""Policies of a kit that answer otherwise than ``main``: each mechanism that a policy may name, rules and precisions.

Every rule, every precision and every bounding goes with some mechanism; mechanisms do not know of rules, nor rules of
precisions, so that not every three of them have to be tried together.
"""

from __future__ import annotations

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


@dataclass(frozen=True)
class Variant:
    """One policy.

    Every batch is asked for at `batch_delta`, 0 where the mechanism needs none; `delta` is the budget's, and every
    share's. `groups` says how many people with label 0, and with label 1, are advantaged. All else is as a policy has
    it.
    """

    mechanism: str
    rule: str = "basic"
    precision: str | int = "float64"
    bounding: str = "none"
    epsilon_max: float = 2.0**20
    batch_delta: float = 0.0
    delta: float = 0.0
    people: int = 48
    groups: tuple[int, int] = field(default=(17, 4))
    minimum_group: int = 3

    def changed(self, policy: dict[str, Any]) -> dict[str, Any]:
        """Return a policy that is this one where this one says something."""
        audit = policy["audit"] | {
            "mechanism": self.mechanism,
            "precision": self.precision,
            "bounding": self.bounding,
            "epsilon_max": self.epsilon_max,
            "delta": self.batch_delta,
        }
        budget = policy["budget"] | {"rule": self.rule, "delta": self.delta}
        metrics = [metric for metric in audit["metrics"] if not find_metric(metric).binary]
        developers = {
            name: {"epsilon": SPENDABLE if name.startswith("spender") else share["epsilon"], "delta": self.delta}
            for name, share in policy["developers"].items()
        }
        if self.rule == "basic" and self.batch_delta:
            developers[SHORT_OF_DELTA]["delta"] = 5 * self.batch_delta
        kept = {name: section for name, section in policy.items() if name != "release"}
        kept["data"] = policy["data"] | {"minimum_group": self.minimum_group}
        return kept | {"audit": audit | {"metrics": metrics}, "budget": budget, "developers": developers}


VARIANTS: dict[str, Variant] = {
    "decimals": Variant("laplace", rule="advanced", precision=3, bounding="clamp", delta=2.0**-20),
    "truncated": Variant("laplace", rule="zcdp", bounding="truncate", delta=2.0**-20),
    "gaussian": Variant("gaussian", rule="tight", batch_delta=BATCH_DELTA, delta=TOTAL_DELTA),
    "conceal": Variant("conceal", precision="float32"),
    "conceal-laplace": Variant("conceal-laplace", epsilon_max=0.75, batch_delta=BATCH_DELTA, delta=TOTAL_DELTA),
    "cauchy": Variant("cauchy", precision=6, bounding="boundary-inflate"),
    "counts": Variant("counts"),
    "counts-gaussian": Variant(
        "counts-gaussian", rule="zcdp", precision="float32", batch_delta=BATCH_DELTA, delta=TOTAL_DELTA
    ),
    "cube": Variant("cube"),
    "cells": Variant("cells", people=96, groups=(30, 20)),
    "low-rank": Variant("low-rank", epsilon_max=2.0**10),
    "randomized-response": Variant("randomized-response"),
    "sparse-vector": Variant("sparse-vector"),
    "exponential": Variant("exponential", rule="advanced", delta=2.0**-20),
    "sample-and-aggregate": Variant("sample-and-aggregate", people=96, groups=(30, 20), precision=9),
    # With any larger minimum there is nothing to test.
    "propose-test-release": Variant(
        "propose-test-release", batch_delta=BATCH_DELTA, delta=TOTAL_DELTA, minimum_group=1
    ),
    "recommended": Variant("recommended", epsilon_max=2.0**10),
    "by-group": Variant("laplace", people=96, groups=(30, 20)),
}
"""By the deployment's name."""
