"""A search for less discriminatory alternatives: the result of `AuditClient.search`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from fairwall.client.gaps import Answer, Terms, axes_of, require_pandas
from fairwall.client.predictions import PredictionBatch, in_order
from fairwall.client.rows import labels_of, say
from fairwall.laws.studies.alternatives import NAME_MAX, Candidates, SearchPosterior

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__tracebackhide__ = True
"""Hides frames from pytest, which would print arguments: rows about people."""


@dataclass(frozen=True, eq=False)
class Search:
    """The result of a search, about all candidates jointly: valid for whichever is chosen, at no further cost.

    Parameters
    ----------
    answer : Answer
        The request's answer; each of its intervals holds for one model that was not chosen by its answer.
    candidates : Candidates
        The candidates.
    error, error_alone : float
        The expected error of an answer, and that of separate requests with each candidate's part of epsilon: NaN if
        this part is less than one request may spend.
    """

    answer: Answer
    candidates: Candidates
    error: float
    error_alone: float
    _found: SearchPosterior = field(init=False, repr=False)

    def __post_init__(self) -> None:
        assert self.answer.draws is not None, "a search has draws"
        object.__setattr__(self, "_found", SearchPosterior(self.answer.metric, self.candidates, self.answer.draws))

    def least(self, at_least: float | None = None) -> str:
        """Return the name of the candidate with the least expected disparity among those with at least this utility.

        By default the utility is the request's ``at_least``. Gaps of less useful candidates are known less well.
        ValueError if no candidate is so useful, or nothing is known of gaps.
        """
        return self.candidates.names[self._found.least(at_least)]

    def alike(self, at_least: float | None = None) -> list[str]:
        """Return the candidates that have less disparity than `least` with a probability of 5% or more.

        ValueError as of `least`.
        """
        return [self.candidates.names[each] for each in self._found.alike(at_least)]

    def records(self) -> list[dict[str, Any]]:
        """Return one record for each candidate: the columns of `SearchPosterior.records`, and ``gap``, the answer."""
        told = zip(self._found.records(), self.answer.gaps.tolist(), strict=True)
        return [{"model": one["model"], "utility": one["utility"], "gap": gap, **one} for one, gap in told]

    def frame(self) -> pd.DataFrame:
        """Return `records` by candidates' names, with request and charge in ``attrs``; ImportError without pandas."""
        frame: pd.DataFrame = require_pandas("records()").DataFrame(self.records()).set_index("model")
        frame.attrs = {**self.answer.frame().attrs, "baseline": self.candidates.names[self.candidates.baseline]}
        return frame

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw disparity against utility: each candidate, the front and its band, the baseline and the least.

        The axes are by default those of a new figure. ImportError without matplotlib.
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
        """Return the result in words."""
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


def expected_error(batch: PredictionBatch, epsilon: float, terms: Terms) -> float:
    """Return the median error of the last answers of a search for ``sp`` by `recommended`; reads nobody's group.

    With very many people it is computed from a part of them, as the service predicts it.
    """
    from fairwall.laws.choice.cell_partition import part_of
    from fairwall.laws.choice.choose import Allowance, best_for_search
    from fairwall.laws.choice.public_batch import FEW, AskedBatch  # imported here because loading it takes a while
    from fairwall.laws.metrics.group_size_range import Shares
    from fairwall.laws.privacy.exposure import Limit

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
    """Return the candidates, with numbers for names if they have none.

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
