"""Scenario files of the inference game, with the checks of a playable scenario."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from adversary.attacks import ATTACKS
from fairwall.learning.defences import DEFENCES
from sim.scenarios.scenario import (
    NOT_ASKED,
    PaperFigure,
    Scenario,
    ScenarioKeys,
    ScenarioTable,
    mechanism_problems,
    one_of,
)


class InferenceData(ScenarioTable):
    """The table, and the roles of its protected attributes.

    Attributes
    ----------
    also_protected : further protected attributes, each with its advantaged value.
    include_protected : whether the game's protected attribute is a feature of the models.
    train_share : share of the table that the developer trains on; by default half of what the test and audited rows
        leave.
    test_share : share held back as test rows, and again for compliance's audits; by default a fifth, at most 4,000
        rows.
    """

    also_protected: dict[str, str] = Field(default={})
    include_protected: bool = Field(default=False, strict=True)
    train_share: float | None = Field(default=None, strict=True, gt=0, lt=1)
    test_share: float | None = Field(default=None, strict=True, gt=0, lt=1)


class InferenceDeveloper(ScenarioKeys):
    """The models that the developer trains, and their defence.

    `iterations` and `small_table` settle details of `fft-paper` that the paper leaves open: the unit of its iterations,
    and the size of the whole table, in rows, up to which it prints fewer.
    """

    defence: Annotated[str, one_of(DEFENCES)] = "none"
    strength: float = Field(default=1.0, strict=True, ge=0, alias="lambda")
    lambdas: tuple[Annotated[float, Field(ge=0)], ...] = Field(default=(), max_length=20)
    rehearsal: float = Field(default=0.2, strict=True, ge=0, le=1)
    purity: float = Field(default=1.0, strict=True, ge=0.5, le=1)
    victims: int = Field(default=20, strict=True, ge=2, le=100)
    rows: int = Field(default=0, strict=True, ge=0)
    other_rows: int = Field(default=0, strict=True, ge=0)
    steps: int = Field(default=0, strict=True, ge=0, le=100_000)
    tune_steps: int = Field(default=0, strict=True, ge=0, le=100_000)
    training_epsilon: float = Field(default=3.0, strict=True, gt=0)
    training_delta: float = Field(default=1e-5, strict=True, gt=0, lt=1)
    adaptive_clipping: bool = Field(default=False, strict=True)
    iterations: Literal["steps", "epochs"] = "steps"
    small_table: int = Field(default=1000, strict=True, ge=0)


class InferenceAdversary(ScenarioKeys):
    """The outside adversary's attacks."""

    attack: tuple[Annotated[str, one_of(ATTACKS)], ...] = Field(default=(), max_length=10)
    probes: int = Field(default=2000, strict=True, ge=2, le=100_000)
    shadows: int = Field(default=100, strict=True, ge=0, le=2000)
    answers: Literal["scores", "labels"] = "scores"
    adapts: bool = Field(default=True, strict=True)


class InferenceFigure(PaperFigure):
    """A paper's printed figures of the inference game.

    Each must name its data: figures measured on other data are shown, but do not test it.

    Attributes
    ----------
    gap_base, gap, eo_base, eo, label_gap, accuracy_base, accuracy : in percentage points and percent.
    gap_ratio : the gap as a share of the gap before the defence, to a tenth.
    gap_change, eo_change : direction of the defence's effect, where the numbers are lost.
    below_tau, runs : number of runs with a gap of at most 0.05, and of all runs.
    bound_holds : whether the mean gap was at most W times the mean EO, the paper's check of Theorem 1's bound.
    bit : group that all of the paper's models were trained on, 1 the advantaged; ours of that group are compared.
    """

    gap_base: float | None = None
    gap: float | None = None
    eo_base: float | None = None
    eo: float | None = None
    label_gap: float | None = None
    accuracy_base: float | None = None
    accuracy: float | None = None
    gap_ratio: float | None = None
    gap_change: Literal["falls", "rises"] | None = None
    eo_change: Literal["falls", "rises"] | None = None
    below_tau: int | None = Field(default=None, strict=True, ge=0)
    runs: int | None = Field(default=None, strict=True, ge=1)
    bound_holds: bool | None = None
    bit: Literal[0, 1] | None = None

    @model_validator(mode="after")
    def _says_of_what(self) -> Self:
        if self.data is None and self.model_fields_set - {"source", "where", "data"}:
            raise ValueError('must name the data that it was measured on, as data = "source, protected"')
        if (self.below_tau is None) != (self.runs is None) or (self.below_tau or 0) > (self.runs or 0):
            raise ValueError("must have below_tau and runs together, the one at most the other")
        return self


class InferenceScenario(Scenario):
    """A validated scenario of the inference game."""

    data: InferenceData
    developer: InferenceDeveloper = InferenceDeveloper()
    adversary: InferenceAdversary = InferenceAdversary()
    paper: tuple[InferenceFigure, ...] = ()

    @property
    def parts(self) -> tuple[Mapping[str, Any], ...]:
        """The parts of a trial's record: one line per attack."""
        return tuple({"attack": attack} for attack in self.adversary.attack)

    def steps(self) -> tuple[str, ...]:
        """Return the calls by which the parties advance a trial, in order."""
        own = ("SubmitModels", "SubmitGuesses")
        return ("ServeTrial", *own, "SubmitAuditReport") if self.developer.lambdas else own

    def problems(self) -> Iterator[str]:
        """Yield the problems that involve several keys."""
        if self.data.source == "synthetic":
            yield "data.source: synthetic people have no features to learn from"
        developer = self.developer
        if developer.defence == "fft-multi" and not self.data.also_protected:
            yield "data.also_protected: is missing; fft-multi looks at several attributes"
        if self.data.protected in self.data.also_protected:
            yield f"data.also_protected: {self.data.protected} is the attribute that the game is about"
        if developer.lambdas:
            yield from _choice_problems(self)
            if self.data.include_protected:
                yield "data.include_protected: would deal the developer the groups that compliance audits for it"
        elif self.compliance != NOT_ASKED:
            yield "compliance: is not dealt in; only developer.lambdas ask it anything"
        adversary = self.adversary
        if not adversary.attack:
            yield f"adversary.attack: is missing; one or more of {', '.join(ATTACKS)}"
        for name in adversary.attack:
            if ATTACKS[name].needs == "scores" and adversary.answers == "labels":
                yield f"adversary.attack: {name} needs scores, but adversary.answers are labels"
            elif ATTACKS[name].shadows and adversary.shadows < 2:
                yield f"adversary.shadows: {name} needs at least 2, half with either bit"
        if len(set(adversary.attack)) != len(adversary.attack):
            yield "adversary.attack: names an attack twice"


def _choice_problems(scenario: InferenceScenario) -> Iterator[str]:
    tuned = [name for name in DEFENCES if "fft" in name]
    if scenario.developer.defence not in tuned:
        yield f"developer.lambdas: only for a defence that takes one ({', '.join(tuned)})"
    if "compliance" not in scenario.model_fields_set:
        yield "compliance: is missing; developer.lambdas are chosen by its answers"
    if scenario.compliance.metric != "eodds_max":
        yield f"compliance.metric: lambda is chosen by eodds_max, the game's EO, not by {scenario.compliance.metric}"
    yield from mechanism_problems(scenario)
