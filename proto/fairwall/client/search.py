"""A search for less discriminatory alternatives: what it found, `AuditClient.search`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from fairwall.client.gaps import Answer, Terms, axes_of, require_pandas
from fairwall.client.predictions import Batch, in_order
from fairwall.client.rows import labels_of, say
from fairwall.laws.alternatives import NAME_MAX, Candidates, Found

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__tracebackhide__ = True
"""pytest shows the arguments of what failed, and these are rows about people."""


@dataclass(frozen=True, eq=False)
class Search:
    """What a search found, of all candidates together. All of it holds for whichever is chosen, and costs no more.

    Parameters
    ----------
    answer : Answer
        Of the request; its own intervals are each for one model that was not chosen by its answer.
    candidates : Candidates
        What was asked about.
    error, error_alone : float
        What an answer was expected to err by, and what it would if each candidate were asked about by itself with its
        part of epsilon: NaN where that is less than one request may spend.
    """

    answer: Answer
    candidates: Candidates
    error: float
    error_alone: float
    _found: Found = field(init=False, repr=False)

    def __post_init__(self) -> None:
        assert self.answer.draws is not None, "a search has draws"
        object.__setattr__(self, "_found", Found(self.answer.metric, self.candidates, self.answer.draws))

    def least(self, at_least: float | None = None) -> str:
        """Name the candidate that is expected to have the least disparity of those with at least so much utility.

        By default that is what was asked for. Candidates that were not useful enough for that are known less well.
        ValueError if none has so much, or nothing is known of gaps.
        """
        return self.candidates.names[self._found.least(at_least)]

    def alike(self, at_least: float | None = None) -> list[str]:
        """Name those that cannot be told apart from it: with a probability of 5% and more they have less disparity.

        ValueError as of `least`.
        """
        return [self.candidates.names[each] for each in self._found.alike(at_least)]

    def records(self) -> list[dict[str, Any]]:
        """Give one record for each candidate: what `Found.records` has, and ``gap``, the answer."""
        told = zip(self._found.records(), self.answer.gaps.tolist(), strict=True)
        return [{"model": one["model"], "utility": one["utility"], "gap": gap, **one} for one, gap in told]

    def frame(self) -> pd.DataFrame:
        """Give `records` as a frame, by the candidates' names; ``attrs`` has what was asked and charged.

        ImportError without pandas.
        """
        frame: pd.DataFrame = require_pandas("records()").DataFrame(self.records()).set_index("model")
        frame.attrs = {**self.answer.frame().attrs, "baseline": self.candidates.names[self.candidates.baseline]}
        return frame

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw disparity against utility: each candidate, the front and its band, the baseline and the least.

        ImportError without matplotlib.

        Parameters
        ----------
        axes : matplotlib Axes, optional
            By default those of a new figure.
        """
        axes = axes_of(axes, 4)
        found, utilities = self._found, np.array(self.candidates.utilities)
        front = found.front
        levels = np.unique(utilities)
        low, high = found.band(levels.tolist())
        axes.fill_between(levels, low, high, step="pre", color="C0", alpha=0.2, lw=0)
        axes.plot(utilities[front], found.expected[front], drawstyle="steps-pre", color="C0", lw=1.2)
        axes.plot(utilities, found.expected, "o", color="grey", ms=3)
        marked = ((self.candidates.baseline, "s", "C1"), (found.least(), "o", "C0"))
        for which, marker, color in marked:
            axes.plot(utilities[which], found.expected[which], marker, color=color, ms=7)
            axes.annotate(
                self.candidates.names[which],
                (utilities[which], found.expected[which]),
                xytext=(5, 5),
                textcoords="offset points",
            )
        axes.axvline(self.candidates.at_least, color="grey", lw=0.9, ls=":")
        axes.set_ylim(bottom=0)
        axes.set_xlabel("utility")
        axes.set_ylabel(f"expected disparity, {self.answer.asked}")
        return axes

    def __str__(self) -> str:
        """Say in words what was found."""
        told, enough = self.candidates, self.candidates.enough()
        base, records = told.names[told.baseline], {each["model"]: each for each in self.records()}
        if not np.isfinite(self._found.expected).all():
            return (
                f"Of {len(told.names)} candidates nothing is known together: {self.answer.metric} is not searched here."
            )
        one, alike = records[self.least()], self.alike()
        words = [
            f"Of {len(told.names)} candidates {len(enough)} have a utility of {told.at_least:g} and more.",
            f"{one['model']} is expected to have the least disparity of these: its gap is between {one['low']:.3g} and "
            f"{one['high']:.3g} (95%), and its utility {one['utility']:.4g}.",
        ]
        if one["model"] != base:
            words.append(f"It is less than that of {base} with a probability of {one['better']:.0%}.")
        words.append(
            f"{len(alike)} {'other' if len(alike) == 1 else 'others'} cannot be told apart from it."
            if alike
            else "All others can be told apart from it."
        )
        alone = "none would be answered" if np.isnan(self.error_alone) else f"by {self.error_alone:.2g}"
        words.append(f"Answers were expected to err by {self.error:.2g}; with one request for each candidate, {alone}.")
        return " ".join(words)


def expected_error(batch: Batch, epsilon: float, terms: Terms) -> float:
    """Return the median error of what is left in the end of a search by `recommended`, of ``sp``; of nobody's groups.

    Of very many people by a part of them, as the service predicts it.
    """
    from fairwall.laws.batch import FEW, AskedBatch  # here: loading it takes a while
    from fairwall.laws.cells import part_of
    from fairwall.laws.choice import Allowance, best_for_search
    from fairwall.laws.exposure import Limit
    from fairwall.laws.shares import Shares

    people = batch.shape[1]
    some = np.arange(people) if people <= 2 * FEW else part_of(people, FEW)
    predictions = np.concatenate([block[:, some] for block in batch])
    asked = AskedBatch("sp", predictions, np.zeros(len(some), np.uint8), ("sp",), people / len(some))
    limit = Limit(terms.reveal_max or 1.0, Shares(minimum_group=terms.minimum_group, by_policy=True))
    return best_for_search(asked, Allowance(epsilon, limit=limit)).median_error


def candidates_of(
    names: Sequence[str],
    models: int,
    utility: Any,
    baseline: str | int,
    at_least: float | None,
) -> Candidates:
    """Say what models are candidates for, with numbers for names where they have none.

    ValueError for utilities, a baseline or a least utility that do not fit.
    """
    called = tuple(names) or tuple(str(number) for number in range(models))
    utility = in_order(utility, "utility")
    if not isinstance(utility, Mapping) and say(labels_of(utility)):
        if not utility.index.is_unique:
            raise ValueError("utility: a candidate is labelled twice")
        utility = utility.to_dict()
    if isinstance(utility, Mapping):
        if set(utility) != set(called):
            odd = sorted(set(utility) ^ set(called), key=str)[0]
            raise ValueError(f"utility: must have every candidate's name and no other; {odd!r} is in one of them alone")
        utility = [utility[name] for name in called]
    try:
        utilities = tuple(map(float, utility))
    except (TypeError, ValueError):
        utilities = ()
    if len(utilities) != models or not np.isfinite(utilities).all():
        raise ValueError(f"utility: must be one finite number for each of {models} candidates")
    place = called.index(baseline) if isinstance(baseline, str) and baseline in called else baseline
    if not isinstance(place, Integral) or not 0 <= place < models:
        raise ValueError(f"baseline {baseline!r}: must be a candidate's name, or its number from 0")
    if len(set(called)) < models:
        raise ValueError("candidates must have different names")
    if odd_names := [name for name in called if not (1 <= len(name) <= NAME_MAX and name.isprintable())]:
        raise ValueError(f"candidate {odd_names[0]!r}: a name has 1 to {NAME_MAX} printable characters")
    least = utilities[place] if at_least is None else float(at_least)
    found = Candidates(called, utilities, place, least)
    found.enough()
    return found
