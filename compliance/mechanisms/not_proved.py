"""Plug-in mechanisms of others: their promises are not proved here, and each answer is checked before it leaves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from compliance.ledger.accountant import Loss
from compliance.mechanisms.mechanism import BatchQuestion, Facts, Guarantee, Mechanism, MechanismAnswer
from compliance.noise.sampling import Noise
from fairwall.plugins import Plugin


@dataclass(frozen=True, eq=False)
class NotProved:
    """A plug-in's mechanism. It may not answer free, nor choose other mechanisms. See `Mechanism`."""

    plugin: Plugin
    own: Mechanism

    @property
    def name(self) -> str:
        """The plug-in's name."""
        return self.plugin.name

    @property
    def title(self) -> str:
        """The plug-in's title, marked as not proved here."""
        return f"{self.own.title} (not proved here)"

    @property
    def guarantee(self) -> Guarantee:
        """The plug-in's promised guarantee."""
        return self.own.guarantee

    def refuses(self, metric: str, epsilon: float, delta: float) -> str | None:
        """Return why such a batch is not answered."""
        return self.plugin.call(self.own.refuses, metric, epsilon, delta)

    def cost(self, epsilon: float, delta: float) -> Loss:
        """Return the plug-in's price of a batch, which must be a `Loss`."""
        loss = self.plugin.call(self.own.cost, epsilon, delta)
        self.plugin.require(isinstance(loss, Loss), "its cost is no Loss")
        return loss

    def release(
        self, question: BatchQuestion, facts: Facts, epsilon: float, delta: float, noise: Noise
    ) -> MechanismAnswer:
        """Return the plug-in's answers, which must be one finite float64 a model."""
        release = self.plugin.call(self.own.release, question, facts, epsilon, delta, noise)
        self.plugin.require(isinstance(release, MechanismAnswer), "released no Release")
        for what, values in (("answers", release.values), ("low", release.low), ("high", release.high)):
            if values is None and what != "answers":
                continue
            found = np.asarray(values)
            fits = found.dtype == np.float64 and found.shape == (question.queries,)
            self.plugin.require(fits, f"its {what} are not one float64 for each of {question.queries} models")
            self.plugin.require(np.isfinite(found).all(), f"its {what} are not finite")
        return release


def of_others(plugin: Plugin, mechanism: Mechanism) -> Mechanism:
    """Wrap a plug-in's mechanism; refused if an attribute of `Mechanism` is missing or wrong."""
    missing = [each for each in dir(Mechanism) if not each.startswith("_") and not hasattr(mechanism, each)]
    plugin.require(not missing, f"is no mechanism: it has no {', '.join(missing)}")
    plugin.require(getattr(mechanism, "name", None) == plugin.name, f"its mechanism is not named {plugin.name}")
    plugin.require(mechanism.guarantee in ("pure", "approximate", "none"), "its guarantee is none that there is")
    return NotProved(plugin, mechanism)
