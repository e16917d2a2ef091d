"""A plugin for pytest: the fixture ``audit``, with which a team's tests measure a model's gap.

``pytest_plugins = ["fairwall.tools.pytest_plugin"]`` in the outermost conftest.py loads it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, Self

import pytest

from fairwall.client.audit_client import AuditClient, AuditRefused
from fairwall.client.by_group import ByGroup
from fairwall.client.gaps import Answer
from fairwall.laws.groups.group_tables import spelled
from fairwall.tools.classifiers import ask_about, largest, predictions_of, size

__tracebackhide__ = True
"""Hides frames from pytest, which would print arguments: rows about people."""

_OPTIONS = {
    "audit_address": "where compliance's service is, host:port",
    "audit_credentials": "the folder with your certificate, from pytest's root directory",
    "audit_epsilon": "what a question costs that was not asked before",
    "audit_table": "the test set, a CSV file with the features and the column of ids, from pytest's root directory",
    "audit_data": "the data set's name; the deployment's unless it is given",
    "audit_positive": "the favourable one of a classifier's two classes; 0 and 1, False and True need no word",
    "audit_when_exhausted": "a test's end where the budget does not cover its question: fail, the default, or skip",
}


class ExplainedNumber(float):
    """A number whose failed assertion shows the subject, the interval and the cost."""

    def __new__(cls, value: float, about: str) -> Self:
        """Make a number, with a text that contains nothing about any person."""
        told = super().__new__(cls, value)
        told._about = about
        return told

    _about: str

    def __repr__(self) -> str:
        return f"{spelled(self, '.4g')} ({self._about})"


@dataclass(frozen=True)
class AuditFixture:
    """Questions about classifiers, each paid for once.

    If the budget does not cover a question, the test fails or is skipped, with one line.

    Parameters
    ----------
    table : frame
        The test set, see ``audit_table``.
    when_exhausted : {"fail", "skip"}
        The outcome of a test whose question the budget does not cover.
    positive : str or None
        The favourable class, see ``audit_positive``.
    """

    audits: AuditClient = field(repr=False)
    table: Any = field(repr=False)
    epsilon: float
    when_exhausted: str = field(default="fail", repr=False)
    positive: str | None = field(default=None, repr=False)

    def gap(self, metric: str, classifier: Any, X: Any = None, *, by: str = "", name: str | None = None) -> float:
        """Return the absolute value of a classifier's gap, noise included.

        Parameters
        ----------
        metric : str
            A difference, such as "sp" or "eo".
        classifier : object
            See `fairwall.tools.classifiers.ask_about`; its decisions are audited.
        X : frame or array, optional
            The classifier's input for the rows of the table; by default the columns that it was fitted to.
        by : str, optional
            The protected column, if the policy has several, as of `AuditClient.ask`.
        name : str, optional
            The classifier's name in a failed assertion; by default its class.
        """
        answer = self.ask(metric, classifier, X, by=by)
        return ExplainedNumber(size(answer), _about(answer, metric, _called(classifier, name)))

    def gap_at_most(
        self, metric: str, classifier: Any, X: Any = None, *, by: str = "", name: str | None = None
    ) -> float:
        """Return a bound on the exact absolute gap, by its guaranteed interval; NaN without one."""
        answer = self.ask(metric, classifier, X, by=by)
        return ExplainedNumber(largest(answer), _about(answer, metric, _called(classifier, name)))

    def ratio(
        self,
        by: str | Sequence[str],
        classifier: Any,
        X: Any = None,
        *,
        measure: str = "selection_rate",
        name: str | None = None,
    ) -> float:
        """Return the least impact ratio: the lowest group's rate over the highest one's, noise included.

        The four-fifths rule wants 0.8. NaN if fewer than two groups are large enough to be compared. `by` and `measure`
        are those of `AuditClient.count_by_group`, the others as of `gap`.
        """
        return self._ratio(self.by_group(by, classifier, X, measures=[measure]), name, classifier, "ratio")

    def ratio_at_least(
        self,
        by: str | Sequence[str],
        classifier: Any,
        X: Any = None,
        *,
        measure: str = "selection_rate",
        name: str | None = None,
    ) -> float:
        """Return the lower end of the interval of the exact least impact ratio; see `ratio`."""
        return self._ratio(self.by_group(by, classifier, X, measures=[measure]), name, classifier, "ratio_low")

    def ask(self, metric: str, classifier: Any, X: Any = None, *, by: str = "") -> Answer:
        """Return the whole answer."""
        X, table = self._rows(classifier, X)
        with self._budget():
            return ask_about(
                self.audits, classifier, X, metric, self.epsilon, table=table, by=by, positive=self.positive
            )

    def by_group(
        self, by: str | Sequence[str], classifier: Any, X: Any = None, *, measures: Sequence[str] | None = None
    ) -> ByGroup:
        """Return the counts by group, of which `frame` makes a table; see `AuditClient.count_by_group`."""
        X, table = self._rows(classifier, X)
        predictions = predictions_of(classifier, X, positive=self.positive)
        with self._budget():
            return self.audits.count_by_group(predictions, by, self.epsilon, measures=measures, table=table, once=True)

    def _ratio(self, counts: ByGroup, name: str | None, classifier: Any, end: Literal["ratio", "ratio_low"]) -> float:
        (measure,) = counts.measures
        about = f"{measure} of {_called(classifier, name)} by {', '.join(counts.by)}"
        worst = counts.worst_pair(measure)
        if worst is None:
            return ExplainedNumber(math.nan, f"{about}: fewer than two groups are large enough to be compared")
        most, least, pair = worst
        return ExplainedNumber(
            getattr(pair, end),
            f"{about}: {'/'.join(least)} to {'/'.join(most)} is {spelled(pair.ratio)}, "
            f"{_sure(pair.ratio_low, pair.ratio_high)}; {_cost(counts)}",
        )

    def _rows(self, classifier: Any, X: Any) -> tuple[Any, Any]:
        """Return a classifier's input, and the table to compare with the service's; None if its rows have no ids."""
        if X is None:
            names = getattr(classifier, "feature_names_in_", None)
            if names is None:
                raise ValueError("the classifier does not say which columns it was fitted to: pass X")
            X = self.table[list(names)]
        return X, None if self.audits.terms().rows is None else self.table

    @contextmanager
    def _budget(self) -> Iterator[None]:
        try:
            yield
        except AuditRefused as error:
            if error.reason != "BUDGET_EXHAUSTED":
                raise
            if self.when_exhausted == "skip":
                pytest.skip(f"not audited: {error}")
            pytest.fail(f"not audited: {error}", pytrace=False)


def _called(classifier: Any, name: str | None) -> str:
    """Return a classifier's name, by default its class: its own text may hold rows."""
    return type(classifier).__name__ if name is None else name


def _about(answer: Answer, metric: str, name: str) -> str:
    (low, *_), (high, *_) = answer.low, answer.high
    by = f" by {answer.by}" if answer.by else ""
    return f"{metric} of {name}{by} is {spelled(answer.gaps[0])}, {_sure(low, high)}; {_cost(answer)}"


def _sure(low: float, high: float) -> str:
    return "nothing is guaranteed" if math.isnan(low) else f"the exact one between {low:.3f} and {high:.3f}"


def _cost(purchase: Answer | ByGroup) -> str:
    return f"epsilon {purchase.epsilon_charged:,g}, {purchase.epsilon_remaining_now:,g} is left"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of ``[tool.pytest.ini_options]``."""
    for name, text in _OPTIONS.items():
        parser.addini(name, text, default="")


@pytest.fixture(scope="session")
def audit_table(pytestconfig: pytest.Config) -> Any:
    """Read the test set as pandas does; a fixture of this name in conftest.py may replace this."""
    import pandas

    return pandas.read_csv(pytestconfig.rootpath / _option(pytestconfig, "audit_table"))


@pytest.fixture(scope="session")
def audit(pytestconfig: pytest.Config, audit_table: Any) -> Iterator[AuditFixture]:
    """Connect to compliance's service; see `AuditFixture`."""
    try:
        epsilon = float(_option(pytestconfig, "audit_epsilon"))
    except ValueError:
        raise pytest.UsageError("audit_epsilon: must be a number above 0: what one question may cost") from None
    when_exhausted = pytestconfig.getini("audit_when_exhausted") or "fail"
    if when_exhausted not in ("fail", "skip"):
        raise pytest.UsageError(f"audit_when_exhausted: must be fail or skip, not {when_exhausted}")
    credentials = pytestconfig.rootpath / _option(pytestconfig, "audit_credentials")
    data = pytestconfig.getini("audit_data") or None
    with AuditClient(_option(pytestconfig, "audit_address"), credentials, data=data) as audits:
        yield AuditFixture(audits, audit_table, epsilon, when_exhausted, pytestconfig.getini("audit_positive") or None)


def _option(config: pytest.Config, name: str) -> str:
    value = config.getini(name)
    if not isinstance(value, str) or not value:
        raise pytest.UsageError(f"{name}: is missing in [tool.pytest.ini_options]: {_OPTIONS[name]}")
    return value
