"""A plugin for pytest: the fixture ``audit``, by which a team's tests ask how large a model's gap is.

``pytest_plugins = ["fairwall.tools.pytest_plugin"]`` in the outermost conftest.py loads it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from fairwall.client.audit_client import AuditClient
from fairwall.client.gaps import Answer
from fairwall.tools.classifiers import ask_about, largest, size

__tracebackhide__ = True
"""pytest shows the arguments of what failed, and these are rows about people."""

_OPTIONS = {
    "audit_address": "where compliance's service is, host:port",
    "audit_credentials": "the folder with your certificate, from pytest's root directory",
    "audit_epsilon": "what a question costs that was not asked before",
    "audit_table": "the test set, a CSV file with the features and the column of ids, from pytest's root directory",
    "audit_data": "the data set's name; the deployment's unless it is given",
}


@dataclass(frozen=True)
class Audit:
    """Questions about classifiers, each of which is paid for once.

    Parameters
    ----------
    table : frame
        The test set, see ``audit_table``.
    """

    audits: AuditClient = field(repr=False)
    table: Any = field(repr=False)
    epsilon: float

    def gap(self, metric: str, classifier: Any, X: Any = None) -> float:
        """Return how large a classifier's gap is, whoever is ahead, noise included.

        Parameters
        ----------
        metric : str
            A difference, such as "sp" or "eo".
        classifier : object
            See `fairwall.tools.classifiers.ask_about`; its decisions are audited.
        X : frame or array, optional
            What it is given for the rows of the table; by default the columns that it was fitted to.
        """
        return size(self.ask(metric, classifier, X))

    def gap_at_most(self, metric: str, classifier: Any, X: Any = None) -> float:
        """Return how large the exact gap may be, by its interval that is guaranteed; NaN where none is."""
        return largest(self.ask(metric, classifier, X))

    def ask(self, metric: str, classifier: Any, X: Any = None) -> Answer:
        """Return the whole answer."""
        if X is None:
            names = getattr(classifier, "feature_names_in_", None)
            if names is None:
                raise ValueError("the classifier does not say which columns it was fitted to: pass X")
            X = self.table[list(names)]
        table = None if self.audits.terms().rows is None else self.table
        return ask_about(self.audits, classifier, X, metric, self.epsilon, table=table)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Name the options of ``[tool.pytest.ini_options]``."""
    for name, text in _OPTIONS.items():
        parser.addini(name, text, default="")


@pytest.fixture(scope="session")
def audit_table(pytestconfig: pytest.Config) -> Any:
    """Read the test set as pandas does; a conftest.py may have a fixture of this name that makes it otherwise."""
    import pandas

    return pandas.read_csv(pytestconfig.rootpath / _option(pytestconfig, "audit_table"))


@pytest.fixture(scope="session")
def audit(pytestconfig: pytest.Config, audit_table: Any) -> Iterator[Audit]:
    """Ask compliance's service; see `Audit`."""
    try:
        epsilon = float(_option(pytestconfig, "audit_epsilon"))
    except ValueError:
        raise pytest.UsageError("audit_epsilon: must be a number") from None
    credentials = pytestconfig.rootpath / _option(pytestconfig, "audit_credentials")
    data = pytestconfig.getini("audit_data") or None
    with AuditClient(_option(pytestconfig, "audit_address"), credentials, data=data) as audits:
        yield Audit(audits, audit_table, epsilon)


def _option(config: pytest.Config, name: str) -> str:
    value = config.getini(name)
    if not isinstance(value, str) or not value:
        raise pytest.UsageError(f"{name}: is missing in [tool.pytest.ini_options]: {_OPTIONS[name]}")
    return value
