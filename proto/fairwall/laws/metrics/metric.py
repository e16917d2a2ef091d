"""Fairness metrics: their strata, the values they sum, and whether their sign is kept.

h is a prediction, y the public label, a = 1 the advantaged and a = 0 the disadvantaged group. Every gap is advantaged
minus disadvantaged. Predictions are 0 or 1, or scores in [0, 1]; predictive parity needs 0 or 1.

| key           | definition                                           | Fairlearn (0/1 predictions, two groups)   |
|---------------|------------------------------------------------------|-------------------------------------------|
| ``sp``        | mean of h over a=1, minus mean of h over a=0         | none with a sign                          |
| ``abs_sp``    | absolute value of ``sp``                             | ``demographic_parity_difference``         |
| ``eo``        | as ``sp``, among the people with y = 1: the TPR gap  | none with a sign                          |
| ``abs_eo``    | absolute value of ``eo``                             | ``equal_opportunity_difference``          |
| ``fpr``       | as ``sp``, among the people with y = 0: the FPR gap  | none with a sign                          |
| ``abs_fpr``   | absolute value of ``fpr``                            | ``false_positive_rate_difference``        |
| ``eodds_max`` | the larger of ``abs_eo`` and ``abs_fpr``             | ``equalized_odds_difference``             |
| ``eodds_sum`` | ``abs_eo`` plus ``abs_fpr``                          | twice that with ``agg="mean"``            |
| ``ppv``       | share of y = 1 among the people with h = 1, likewise | ``MetricFrame`` of ``precision_score``    |
| ``oad``       | mean of 1 - abs(y - h), likewise: the accuracy gap   | ``MetricFrame`` of ``accuracy_score``     |
| ``abs_oad``   | absolute value of ``oad``                            | ``accuracy_score_difference``             |
| ``di``        | mean of h over a=0, *divided by* mean of h over a=1  | ``demographic_parity_ratio`` if at most 1 |

Sources: Hamman, Chen, Dutta, FAccT 2023, definitions 2.1 and 2.2 (sp, eo); Arcolezi, Makhlouf, Palamidessi, DBSec
2023, section 3.1 (di, oad).
"""

import difflib
import itertools
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from fairwall.arrays import Bools, Bytes, Floats
from fairwall.errors import NotOneOf, UserError, did_you_mean
from fairwall.plugins import Plugin, Registry

Value = Literal["prediction", "correct", "hit"]
"""A person's public value: h; 1 - abs(y - h); or h y."""


@dataclass(frozen=True)
class MetricPart:
    """A quantity that a metric sums over each group; these sums and the counts determine the metric.

    The value is one number in [0, 1] for each person; the label selects the stratum, None for everybody.
    """

    value: Value
    label: int | None = None


@dataclass(frozen=True, eq=False)
class MetricSums:
    """Inputs of a metric from one of its parts. Secret.

    Parameters
    ----------
    sum1, sum0 : sums of each model's values over the stratum's advantaged and disadvantaged people, shape (m,), taken
        with `fairwall.laws.metrics.values.sums_over`.
    n1, n0 : how many advantaged and disadvantaged people the stratum has; need not be whole where they are estimates.
    """

    sum1: Floats
    sum0: Floats
    n1: float
    n0: float


class MetricError(UserError, ValueError):
    """A metric without the facts that error distributions need. Its text is one line."""


_PRECISION = (MetricPart("hit"), MetricPart("prediction"))


@dataclass(frozen=True)
class Metric:
    """The public definition of a group fairness metric.

    MetricError is raised without a formula that is needed, and for any metric of several parts other than predictive
    parity: sensitivity, range and intervals follow from this definition, and would be wrong.

    Parameters
    ----------
    name, title : the key in `METRICS`, in scenario files and in results; the name in reports.
    absolute : whether gaps lose their sign. This changes the sensitivity.
    binary : whether predictions must be 0 or 1.
    bounded : whether one person's effect is bounded. An unbounded metric cannot be protected by noise on the metric.
    joined : for several strata, each with one part: "max" or "sum" of their absolute gaps.
    formula : from the `MetricSums` of each part to the metric of each model, where that is no gap of means.
    also : other names: Fairlearn's name where that means the same, in all cases.
    """

    name: str
    title: str
    parts: tuple[MetricPart, ...]
    absolute: bool = False
    binary: bool = False
    bounded: bool = True
    joined: Literal["max", "sum"] | None = None
    formula: Callable[..., Floats] | None = None
    also: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        one_each = len(self.strata) == len(self.parts) > 1
        if self.joined is not None:
            is_known = self.joined in ("max", "sum") and one_each and self.absolute and self.bounded and not self.binary
        else:
            is_precision = (self.parts, self.absolute, self.binary, self.bounded) == (_PRECISION, False, True, True)
            is_known = is_precision if len(self.parts) != 1 else not self.binary
        if not is_known:
            raise MetricError(
                f"metric {self.name}: how its {len(self.parts)} parts come together is missing: one mean a group, "
                'joined = "max" or "sum" of absolute gaps with one part a stratum, or predictive parity '
                "(fairwall.laws.metrics.metric)"
            )
        if (self.formula is None) == (self.joined is None and not self.of_means):
            raise MetricError(
                f"metric {self.name}: its formula is "
                + ("missing" if self.formula is None else "what its parts say")
                + " (fairwall.laws.metrics.metric)"
            )

    @property
    def strata(self) -> tuple[int | None, ...]:
        """The labels of the metric's strata, each once; None for everybody."""
        return tuple(dict.fromkeys(part.label for part in self.parts))

    @property
    def sums_a_stratum(self) -> int:
        """The number of sums of one stratum for one query."""
        return max(sum(part.label == label for part in self.parts) for label in self.strata)

    @property
    def label(self) -> int | None:
        """The label of the metric's only stratum; None if everybody counts, in one stratum or in two."""
        return self.strata[0] if len(self.strata) == 1 else None

    @property
    def of_means(self) -> bool:
        """Whether the metric is a difference of two group means, or its absolute value."""
        return self.bounded and len(self.parts) == 1

    @property
    def labelled(self) -> bool:
        """Whether labels are needed."""
        return any(part.label is not None or part.value != "prediction" for part in self.parts)

    def of_gaps(self, gaps: Sequence[Floats]) -> Floats:
        """Return the metric from the gaps of means in its strata; MetricError for a metric with its own formula."""
        if self.formula is not None:
            raise MetricError(f"metric {self.name}: does not follow from gaps of means, as is asked for here")
        if self.joined is not None:
            join = np.maximum if self.joined == "max" else np.add
            return np.asarray(join.reduce([np.abs(gap) for gap in gaps]))
        (gap,) = gaps
        return np.abs(gap) if self.absolute else gap


def predictive_parity(hits: MetricSums, positives: MetricSums) -> Floats:
    """Return the PPV gap: P(y=1 | h=1, a=1) - P(y=1 | h=1, a=0).

    Fairlearn: the group difference of a MetricFrame of precision. 0 where a group has nobody with h = 1: refusing would
    tell something about that group. Fairlearn takes that group's precision for 0 instead, which doubles how far one
    person can move the gap.
    """
    defined = (positives.sum1 > 0) & (positives.sum0 > 0)
    precision1 = hits.sum1 / np.where(defined, positives.sum1, 1.0)
    precision0 = hits.sum0 / np.where(defined, positives.sum0, 1.0)
    return np.where(defined, precision1 - precision0, 0.0)


def disparate_impact(predictions: MetricSums) -> Floats:
    """Return DI: P(h=1 | a=0) / P(h=1 | a=1). Fairlearn: `demographic_parity_ratio`, the smaller of DI and 1/DI."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return (predictions.sum0 / predictions.n0) / (predictions.sum1 / predictions.n1)


_MEAN = (MetricPart("prediction"),)
_POSITIVES = (MetricPart("prediction", label=1),)
_NEGATIVES = (MetricPart("prediction", label=0),)
_ODDS = _POSITIVES + _NEGATIVES
_CORRECT = (MetricPart("correct"),)


def _checked(plugin: Plugin, metric: Metric) -> Metric:
    """Check a plug-in's metric, and wrap its formula in a check of its results."""
    plugin.require(isinstance(metric, Metric) and metric.name == plugin.name, "is no Metric of its name")
    formula = metric.formula
    if formula is None:
        return metric

    def checked(*sums: MetricSums) -> Floats:
        found = plugin.call(formula, *sums)
        plugin.require(
            isinstance(found, np.ndarray) and found.dtype == np.float64 and found.shape == sums[0].sum1.shape,
            "its formula gave something else than one float64 a model",
        )
        return found

    return replace(metric, formula=checked)


METRICS: Registry[Metric] = Registry(
    "metrics",
    {
        metric.name: metric
        for metric in (
            Metric("sp", "statistical parity gap", _MEAN, also=("demographic_parity", "statistical_parity")),
            Metric(
                "abs_sp",
                "absolute statistical parity gap",
                _MEAN,
                absolute=True,
                also=("demographic_parity_difference",),
            ),
            Metric("eo", "equal opportunity gap", _POSITIVES, also=("equal_opportunity",)),
            Metric(
                "abs_eo",
                "absolute equal opportunity gap",
                _POSITIVES,
                absolute=True,
                also=("equal_opportunity_difference",),
            ),
            Metric("fpr", "false positive rate gap", _NEGATIVES, also=("predictive_equality",)),
            Metric(
                "abs_fpr",
                "absolute false positive rate gap",
                _NEGATIVES,
                absolute=True,
                also=("false_positive_rate_difference",),
            ),
            Metric(
                "eodds_max",
                "larger of the two equalized odds gaps",
                _ODDS,
                absolute=True,
                joined="max",
                also=("equalized_odds", "equalized_odds_difference"),
            ),
            Metric("eodds_sum", "sum of the two equalized odds gaps", _ODDS, absolute=True, joined="sum"),
            Metric(
                "ppv",
                "predictive parity gap",
                _PRECISION,
                binary=True,
                formula=predictive_parity,
                also=("predictive_parity",),
            ),
            Metric("oad", "accuracy gap", _CORRECT, also=("overall_accuracy",)),
            Metric("abs_oad", "absolute accuracy gap", _CORRECT, absolute=True, also=("accuracy_score_difference",)),
            Metric(
                "di",
                "disparate impact ratio",
                _MEAN,
                bounded=False,
                formula=disparate_impact,
                also=("disparate_impact",),
            ),
        )
    },
    _checked,
)


_ELSEWHERE = {
    "sp": "statistical_parity demographic_parity selection_rate positive_rate mean",
    "eo": "equal_opportunity true_positive_rate tpr recall sensitivity -false_negative_rate -fnr -miss_rate",
    "fpr": "predictive_equality false_positive_rate false_alarm_rate fall_out -true_negative_rate -tnr -specificity",
    "eodds_max": "equalized_odds equalised_odds eodds",
    "eodds_sum": "average_odds average_abs_odds",
    "ppv": "predictive_parity positive_predictive_value precision precision_score -false_discovery_rate -fdr",
    "oad": "accuracy accuracy_score overall_accuracy -error_rate -zero_one_loss",
    "di": "disparate_impact impact adverse_impact four_fifths",
}
"""By key, other names of the rate that the metric compares; a minus marks names of 1 less that rate."""

_QUANTITIES = {each.lstrip("-"): (key, each[0] == "-") for key, names in _ELSEWHERE.items() for each in names.split()}

RATES = {"sp": "selection_rate", "eo": "true_positive_rate", "fpr": "false_positive_rate", "oad": "accuracy"}
"""By key, the by-group measure whose gap the metric is."""


_SLIP = 0.8
"""Least likeness, from 0 to 1, of two words that count as one misspelled word."""


def _spelled_alike(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that matches word by word up to misspelling: other words mean something else."""
    words = re.split(r"[_\W]+", name.lower())
    for each in known:
        pairs = list(itertools.zip_longest(words, each.split("_"), fillvalue=""))
        if all(one == other or (one[:1] == other[:1] and _likeness(one, other) >= _SLIP) for one, other in pairs):
            return each
    return None


def _likeness(one: str, other: str) -> float:
    return difflib.SequenceMatcher(None, one, other).ratio()


def meaning(name: str, known: Iterable[str], *, by_group: bool = False) -> str:
    """Return a hint for an invalid metric, or by-group measure, name: its usual meaning, and how ours differs."""
    if (near := _spelled_alike(name, known)) is not None:
        return did_you_mean([near])
    form, quantity = "", _spelled_alike(name, _QUANTITIES)
    if quantity is None and (found := re.fullmatch(r"(.+)[_\W](difference|diff|gap|ratio)", name.lower())):
        form, quantity = found[2], _spelled_alike(found[1], _QUANTITIES)
    if quantity is None:
        return ""
    key, less = _QUANTITIES[quantity]
    rate = RATES.get(key)
    if by_group and rate is None:
        return f"; {key} compares two groups by it: ask for that metric"
    if by_group:
        told = " and its frame has the differences and ratios" if form or quantity.endswith("parity") else ""
        return f"; {rate} is " + (f"1 less {quantity}" if less else f"the rate of each group{told}")
    if key == "di" or (form == "ratio" and key == "sp"):
        return "; di is the disadvantaged group's selection rate over the advantaged one's, and may be above 1"
    if form == "ratio":
        return "; a ratio of rates" + (f" is told by group: ask by_group for {rate}" if rate else ": only di is one")
    if key == "eodds_sum":
        return "; eodds_sum adds up both absolute gaps, and is no mean of them, with signs or without"
    if key == "eodds_max":
        return "; eodds_max is the larger of two absolute gaps"
    if less:
        return f"; {quantity} is 1 less the rate that {key} compares: {key} is its gap with the opposite sign"
    if form:
        return (
            f"; {key} is the advantaged group's rate less the disadvantaged one's: elsewhere often the opposite sign, "
            f"or none{f', as of abs_{key}' if f'abs_{key}' in METRICS else ''}"
        )
    return f"; {key} is the gap between two groups' rates" + (f", by_group tells each: {rate}" if rate else "")


class NotAMetric(NotOneOf):
    """A name that is not a metric's."""

    def hint(self, name: str) -> str:
        """Return the end of the refusal of a name: its likely meaning."""
        return meaning(name, self.names)


def key_of(name: str) -> str:
    """Return the key of `METRICS` for a key or another name of a metric; NotAMetric if there is none."""
    if name in METRICS:
        return name
    others = {other: metric.name for metric in METRICS.values() for other in metric.also}
    if name not in others:
        raise NotAMetric(METRICS, others)
    return others[name]


def find_metric(metric: str) -> Metric:
    """Return the metric of a name, see `key_of`; ValueError with a one-line text for an unknown name."""
    if not isinstance(metric, str):
        raise ValueError(f"metric: must be a name, such as 'sp', not a value of type {type(metric).__name__}")
    try:
        return METRICS[key_of(metric)]
    except NotAMetric as error:
        listed = f"choose one of: {', '.join(METRICS)}{error.hint(str(metric))}"
        raise ValueError(f"unknown metric {metric!r}, {listed}") from None


def stratum(metric: str, labels: Bytes) -> Bools:
    """Return a metric's stratum as a mask, shape (n,), from the public labels; everybody for equalized odds."""
    return members_of(find_metric(metric).label, labels.shape, labels)


def strata_of(metric: str, labels: Bytes) -> list[Bools]:
    """Return the masks of a metric's one or two strata, shape (n,) each, from the public labels of that shape."""
    return [members_of(label, labels.shape, labels) for label in find_metric(metric).strata]


def members_of(label: int | None, shape: tuple[int, ...], labels: Bytes | None) -> Bools:
    """Return the mask, shape (n,), of the people with a label, None for everybody, from the public labels."""
    return np.ones(shape, dtype=np.bool_) if label is None or labels is None else labels == label
