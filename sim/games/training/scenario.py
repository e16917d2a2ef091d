"""Scenario files of the training game."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from developer.training.models import MODELS
from developer.training.network import Network
from developer.training.play import PLAIN, RATES, flip_multiplier, record_multiplier
from developer.training.practice import PRACTICES
from developer.training.regression import Regression
from fairwall.laws.noise.gaussian import gaussian_epsilon
from fairwall.learning.batches import OVERFLOW
from sim.datasets.synthetic import CASE_STUDY
from sim.scenarios.scenario import (
    ComplianceSection,
    Epsilon,
    PaperFigure,
    Scenario,
    ScenarioKeys,
    ScenarioTable,
    one_of,
)

CANARIES_MAX = 10_000

_NETWORK_EPSILON_MAX = 100.0
"""Largest epsilon of a network: the accountant convolves distributions on a grid, which has no room for much more."""

_PURSE_EPSILON = (0.01, 700.0)
_PURSE_DELTA = (1e-9, 0.01)
"""Range of delta. Outside the two ranges the accountant's upward rounding exceeds the developer's reserve, or it knows
no epsilon."""


TOLD = ("fair-representation",)
"""The practices that need information about groups which compliance can give."""


class TrainingData(ScenarioTable):
    """The table, and the people of it who are trained on.

    Attributes
    ----------
    people : their number; all who are not tested on, if 0.
    disadvantaged_share : disadvantaged share of them; by default the table's.
    test_share : share of the table that models are measured on.
    public_share : share of them set aside as public: nothing is promised to these, and models without public rows are
        not trained on them.
    """

    people: int = Field(default=0, strict=True, ge=0)
    disadvantaged_share: float | None = Field(default=None, strict=True, gt=0, lt=1)
    test_share: float = Field(default=0.2, strict=True, gt=0, lt=1)
    public_share: float = Field(default=0.0, strict=True, ge=0, lt=1)


class TrainingSection(ScenarioKeys):
    """The model, its practice, and its promise.

    Attributes
    ----------
    model : one of the eight; "rates" trains none, and requests the groups' rates of the labels.
    practice : training method of the private network.
    epsilon, delta : budget of each record in a private model; the others promise nothing.
    statistics_share : share of epsilon for statistics of groups, where the developer holds them.
    holds_protected : whether the developer holds A. If not, a fair model queries compliance, at `compliance.epsilon`.
    strength : weight of a fair model's penalty; the model's default, if 0.
    steps, batch : of a network; the network's defaults, if 0.
    canaries : number of records that the adversary guesses about.
    """

    model: Annotated[str, one_of({**MODELS, RATES: None})]
    practice: Annotated[str, one_of(PRACTICES)] = PLAIN
    epsilon: Epsilon = 0.1
    delta: float = Field(default=1e-5, strict=True, ge=0, lt=1)
    statistics_share: float = Field(default=0.5, strict=True, gt=0, lt=1)
    holds_protected: bool = Field(default=False, strict=True)
    strength: float = Field(default=0.0, ge=0)
    steps: int = Field(default=0, strict=True, ge=0, le=100_000)
    batch: int = Field(default=0, strict=True, ge=0, le=1_000_000)
    canaries: int = Field(default=0, strict=True, ge=0, le=CANARIES_MAX)


class TrainingFigure(PaperFigure):
    """A paper's printed figures of a model: accuracy in percent and risk difference; group rates in [0, 1].

    `group_accuracy` and `group_fpr` (false positives) are pairs, the disadvantaged first.
    """

    accuracy: float | None = None
    accuracy_sd: float | None = None
    gap: float | None = None
    gap_sd: float | None = None
    group_accuracy: tuple[float, float] | None = None
    group_fpr: tuple[float, float] | None = None


class TrainingScenario(Scenario):
    """A validated scenario of the training game."""

    data: TrainingData
    training: TrainingSection
    paper: tuple[TrainingFigure, ...] = ()

    @property
    def told(self) -> bool:
        """Whether compliance is in the game: the developer needs information about groups, and does not hold them."""
        asked = self.training
        fair = asked.model == RATES or MODELS[asked.model].strength > 0 or asked.practice in TOLD
        return fair and not asked.holds_protected

    @property
    def private(self) -> bool:
        """Whether the model promises anything to records."""
        return self.training.model != RATES and MODELS[self.training.model].budget is not None

    @property
    def network(self) -> bool:
        """Whether the model is a network, which PyTorch trains."""
        return isinstance(MODELS.get(self.training.model), Network)

    def steps(self) -> tuple[str, ...]:
        """Return the calls by which the parties advance a trial, in order."""
        canaries = ("SubmitCanaries",) if self.training.canaries else ()
        own = ("SubmitModel", *canaries)
        return ("ServeTrial", *own, "SubmitAuditReport") if self.told else own

    def problems(self) -> Iterator[str]:
        """Yield the problems that involve several keys."""
        asked = self.training
        if self.data.source == "synthetic":
            yield "data.source: synthetic people have no features to learn from"
        if self.data.source == CASE_STUDY and any(self.data.roles.values()):
            yield f"data.protected: the roles of {CASE_STUDY} are known; leave them out"
        if self.private and math.isinf(asked.epsilon):
            yield 'training.epsilon: a private model needs a number, not "inf"'
        if asked.model == RATES and asked.canaries:
            yield "training.canaries: are about a model, and rates are none"
        yield from self._practice_problems()
        yield from self._network_problems()
        if self.told:
            yield from self._purse_problems()

    def _practice_problems(self) -> Iterator[str]:
        asked = self.training
        practice = PRACTICES[asked.practice]
        if asked.practice != PLAIN and asked.model != "dp-nn":
            yield f"training.practice: {asked.practice} is of the private network; set training.model to dp-nn"
        if practice.groups and not asked.holds_protected:
            yield f"training.holds_protected: {asked.practice} needs the group of every row; set it to true"
        if practice.public and not self.data.public_share:
            yield f"data.public_share: is 0, and {asked.practice} needs public rows"

    def _network_problems(self) -> Iterator[str]:
        asked = self.training
        if self.private and self.network:
            if asked.delta <= OVERFLOW:
                yield f"training.delta: a private network needs more than {OVERFLOW:g}"
            if asked.epsilon > _NETWORK_EPSILON_MAX:
                yield f"training.epsilon: a private network's is at most {_NETWORK_EPSILON_MAX:,g}"

    def _purse_problems(self) -> Iterator[str]:
        purse = self.compliance
        if "compliance" not in self.model_fields_set or purse.mechanism != "gaussian":
            yield 'compliance.mechanism: sums by group are told with "gaussian" noise, or set training.holds_protected'
        elif purse.epsilon is None or not _PURSE_EPSILON[0] <= purse.epsilon <= _PURSE_EPSILON[1]:
            yield "compliance.epsilon: must be from {:g} to {:g} where sums by group are told".format(*_PURSE_EPSILON)
        elif not _PURSE_DELTA[0] <= purse.delta <= _PURSE_DELTA[1]:
            yield "compliance.delta: must be from {:g} to {:g} where sums by group are told".format(*_PURSE_DELTA)
        elif self.private and self.training.delta <= 0:
            yield "training.delta: must be above 0 where sums by group are told with Gaussian noise"
        elif self.private:
            yield from self._cost_problems(purse.epsilon)
        for key in ("metric", "bounding", "reveal_max", "precision", "differencing"):
            if getattr(purse, key) != ComplianceSection.model_fields[key].default:
                yield f"compliance.{key}: is about audits, and sums by group are told"

    def _cost_problems(self, epsilon: float) -> Iterator[str]:
        """Yield a problem if sums by group cost the records more than they are promised."""
        asked = self.training
        delta = asked.delta / 2 if isinstance(MODELS[asked.model], Regression) else asked.delta - OVERFLOW
        # All requests together cost what one request with a smaller multiplier would.
        cost = gaussian_epsilon(record_multiplier(flip_multiplier(epsilon, self.compliance.delta, 1)), delta)
        if cost >= asked.epsilon:
            yield (
                f"training.epsilon: is {asked.epsilon:,g}, and sums by group at compliance.epsilon = {epsilon:,g} "
                f"cost each record {cost:.3g} of it"
            )
