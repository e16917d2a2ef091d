"""Policies of a kit that answer otherwise than ``main``, one per mechanism among them, from ``kit.toml``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairwall import toml
from fairwall.laws.metric import find_metric

SPENDABLE = 0.5
"""Epsilon of the developers who soon run out: small, so that a tighter composition rule sells more of it."""

SHORT_OF_DELTA = "spender-29"
"""Developer whose delta covers five batches under basic composition."""


ADVANTAGED = {"advantaged": ("1",)}
"""Default protected column, and the values of its advantaged group."""


@dataclass(frozen=True)
class Variant:
    """A policy of a kit.

    Every batch has `batch_delta`, 0 if the mechanism needs none; `delta` is that of the budget, and of every share.
    `by` has the protected columns with the values of each one's advantaged group; `groups` has how many people with
    label 0, and with label 1, are advantaged by the first. All else is as in a policy; the default `metrics` are all
    that take scores. What a batch reveals is bounded if it `is_limited`. `more` is added to the policy's sections.
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
    is_limited: bool = False
    spendable: float = SPENDABLE
    more: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def changed(self, policy: dict[str, Any]) -> dict[str, Any]:
        """Return a policy with this variant's changes."""
        audit = {name: value for name, value in policy["audit"].items() if name != "reveal_max"} | {
            "mechanism": self.mechanism,
            "precision": self.precision,
            "bounding": self.bounding,
            "epsilon_max": self.epsilon_max,
            "delta": self.batch_delta,
            **({} if self.is_limited else {"reveal_max": 1.0}),
        }
        budget = policy["budget"] | {"rule": self.rule, "delta": self.delta}
        metrics = list(self.metrics) or [metric for metric in audit["metrics"] if not find_metric(metric).binary]
        developers = {
            name: {"epsilon": self.spendable if name.startswith("spender") else share["epsilon"], "delta": self.delta}
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
        kept |= {"audit": audit | {"metrics": metrics}, "budget": budget, "developers": developers}
        return kept | {name: {**kept.get(name, {}), **its} for name, its in self.more.items()}


def _read(fields: dict[str, Any]) -> Variant:
    named = {key: tuple(value) if isinstance(value, list) else value for key, value in fields.items()}
    by = {column: tuple(values) for column, values in fields.get("by", ADVANTAGED).items()}
    return Variant(**named | {"by": by})


DATA: dict[str, Any] = toml.read(Path(__file__).with_name("kit.toml"))
VARIANTS = {name: _read(told) for name, told in DATA["variants"].items()}
"""Variants by the name of their deployment."""
