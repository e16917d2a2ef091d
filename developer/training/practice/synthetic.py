"""Add synthetic rows of the disadvantaged group to the private rows ([SD], VII-A).

The rows are drawn from a model that AIM (McKenna, Mullins, Sheldon, Miklau, PVLDB 2022) fits to noisy counts of the
group's rows, as `opendp[mbi]` implements it, under zero-concentrated privacy. Each column is counted alone and together
with the label, no columns with one another, since all pairs take minutes on Adult: dependence of two columns beyond the
label is lost. Numbers are put in four public bins. AIM's rows can hold nulls: a null label drops the row, and any other
null becomes zeros.

The advantaged group's rows are not read for it, so their guarantee is stronger. OpenDP draws its noise from the
operating system: this practice alone is no function of the seed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import numpy as np

from developer.training.model import TrainingPromise, TrainingSet, TrainingStep
from developer.training.practice.descent import descent
from developer.training.practice.practice import Halved, PracticeTask, Practised
from fairwall.arrays import Bytes, Floats, Ints
from fairwall.errors import UserError

CUTS = np.array([-1.0, 0.0, 1.0])
"""Boundaries of a standardised number's bins."""

LEVELS = np.array([-1.5, -0.5, 0.5, 1.5])
"""The synthetic number of each bin."""

ROUNDS = 12
"""Rounds of AIM; more rounds take longer and share the budget among more counts."""

_LABEL = "label"


@dataclass(frozen=True)
class CodedColumns:
    """The columns behind the features: each column's feature indices, several if it is `categorical`, i.e. one-hot."""

    places: tuple[tuple[int, ...], ...]
    categorical: tuple[bool, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of codes of each column."""
        return tuple(
            len(of) if one_hot else len(LEVELS) for of, one_hot in zip(self.places, self.categorical, strict=True)
        )

    def encode(self, features: Floats) -> list[Ints]:
        """Return features as codes, column by column; -1 where no feature of a one-hot column is above 0."""
        codes = []
        for of, one_hot in zip(self.places, self.categorical, strict=True):
            part = features[:, list(of)]
            code = np.where(part.max(1) > 0, part.argmax(1), -1) if one_hot else np.digitize(part[:, 0], CUTS)
            codes.append(code.astype(np.int64))
        return codes

    def decode(self, codes: list[Ints]) -> Floats:
        """Return codes as features; -1 becomes zeros."""
        features = np.zeros((len(codes[0]), sum(map(len, self.places))))
        for of, one_hot, code in zip(self.places, self.categorical, codes, strict=True):
            known = np.flatnonzero(code >= 0)
            if one_hot:
                features[known, np.array(of)[code[known]]] = 1
            else:
                features[known, of[0]] = LEVELS[code[known]]
        return features


def columns_of(names: tuple[str, ...], d: int) -> CodedColumns:
    """Group features, named ``column=value`` where one-hot, by column; without names all are numbers."""
    places: dict[str, list[int]] = {}
    for place, name in enumerate(names or map(str, range(d))):
        places.setdefault(name.partition("=")[0], []).append(place)
    return CodedColumns(
        tuple(map(tuple, places.values())), tuple(bool(names) and "=" in names[of[0]] for of in places.values())
    )


def train(task: PracticeTask) -> Practised:
    """Train by DP-SGD on the private and the synthetic rows."""
    protected, budget = task.groups(), task.budget
    if find_spec("mbi") is None or find_spec("polars") is None:
        raise UserError("synthetic rows need OpenDP's AIM: pip install 'fairwall[synthetic]'")
    # Basic composition: epsilons and deltas add.
    of_rows = TrainingPromise(budget.statistics * budget.epsilon, budget.delta / 2)
    of_steps = replace(budget, epsilon=budget.epsilon - of_rows.epsilon, delta=budget.delta - of_rows.delta)
    features, theirs = task.people.features, protected == 0
    columns = columns_of(task.columns, features.shape[1])
    made = synthesise(features[theirs], task.people.labels[theirs], columns, of_rows)
    people = task.people
    if made is not None:
        people = TrainingSet(np.concatenate([features, made[0]]), np.concatenate([people.labels, made[1]]))
    steps = descent(task, rows=len(people.labels), budget=of_steps)
    network = steps.fit(people, task.seed)
    of = "disadvantaged"
    step = TrainingStep(
        "synthetic rows by AIM from noisy counts of columns and label", of_rows.epsilon, of_rows.delta, of
    )
    total = TrainingPromise(of_rows.epsilon + steps.spent.epsilon, of_rows.delta + steps.spent.delta)
    return Practised(Halved(network), (step, steps.step), total, (total, steps.spent))


def synthesise(
    features: Floats, labels: Bytes, columns: CodedColumns, spent: TrainingPromise
) -> tuple[Floats, Bytes] | None:
    """Return about as many synthetic rows, features and labels, as given, by AIM; None if it made no row."""
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")
    names = [f"c{column}" for column in range(len(columns.sizes))]
    table: dict[str, Ints] = dict(zip(names, columns.encode(features), strict=True))
    keys = {name: list(range(size)) for name, size in zip(names, columns.sizes, strict=True)}
    table[_LABEL], keys[_LABEL] = labels.astype(np.int64), [0, 1]
    rho = concentrated(spent)
    # `dp` has no types.
    opendp: Any = dp
    context = opendp.Context.compositor(
        data=pl.DataFrame(table).lazy(),
        privacy_unit=opendp.unit_of(contributions=1),
        privacy_loss=opendp.loss_of(rho=rho),
    )
    pairs = [opendp.mbi.Count((name, _LABEL)) for name in names]
    aim = opendp.mbi.AIM(queries=pairs, rounds=ROUNDS)
    rows = context.query(rho=rho).contingency_table(keys=keys, algorithm=aim).release().synthesize()
    rows = rows.filter(pl.col(_LABEL).is_not_null()).fill_null(-1)
    if rows.height == 0:
        return None
    return columns.decode([rows[name].to_numpy() for name in names]), rows[_LABEL].to_numpy().astype(np.uint8)


def concentrated(spent: TrainingPromise) -> float:
    """Return the rho of zero-concentrated privacy that implies (epsilon, delta)-privacy.

    rho + 2 sqrt(rho ln(1/delta)) = epsilon (Bun and Steinke, TCC 2016, Proposition 1.3).
    """
    tail = math.log(1 / spent.delta)
    return (math.sqrt(spent.epsilon + tail) - math.sqrt(tail)) ** 2
