"""What `AuditClient` can be asked, the tools around it can be asked too; what one leaves out is named here, and why."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

import pytest

from fairwall.client import AuditClient
from fairwall.tools.asynchronous import AsyncAuditClient
from fairwall.tools.classifiers import ask_about
from fairwall.tools.pytest_plugin import AuditFixture
from fairwall.tools.scoring import GapScorer

ABOUT_CLASSIFIERS = {"ask": AuditFixture.ask, "count_by_group": AuditFixture.by_group}
"""What the fixture asks, by the client's name for it."""

NOT_ABOUT_CLASSIFIERS = {
    "by_group": "a frame of count_by_group, which the fixture's by_group has as well",
    "search": "many classifiers, of which a test has one: audit.audits has it",
    "ask_table": "predictions lie in compliance's engine",
    "commit": "keeps what is asked: audit.audits has it",
    "ask_sealed": "the model is handed over as a file: audit.audits has it",
    "by_quantile": "scores, of which a test makes no one number: audit.audits has it",
    "by_segment": "likewise",
    "standardised_difference": "likewise",
    "terms": "no question about a model: audit.audits has it",
    "expected_error": "likewise",
    "group_terms": "likewise",
    "release_terms": "likewise",
    "release": "likewise",
    "close": "the fixture's own",
}
FIXTURE_S_OWN = {
    "predictions": "the classifier's",
    "epsilon": "an option",
    "table": "an option",
    "ids": "the table's",
    "once": "always",
    "request_id": "made of what is asked",
    "threshold": "a test compares the number itself",
    "sample_weight": "refused",
}


def public(client: type) -> dict[str, Callable[..., Any]]:
    return {name: its for name, its in inspect.getmembers(client, inspect.isfunction) if not name.startswith("_")}


def parameters(asks: Callable[..., Any]) -> set[str]:
    return {*inspect.signature(asks).parameters} - {"self"}


def lacking(client: type) -> set[str]:
    """Which methods a client for asyncio lacks, or has otherwise."""
    own = public(client)
    return {
        name
        for name, asks in public(AuditClient).items()
        if not inspect.iscoroutinefunction(own.get(name))
        or (name != "close" and inspect.signature(own[name]) != inspect.signature(asks))
    }


def test_the_client_for_asyncio_has_every_method_with_its_parameters() -> None:
    assert public(AsyncAuditClient).keys() == public(AuditClient).keys()
    assert lacking(AsyncAuditClient) == set()


def test_a_method_that_the_client_for_asyncio_lacks_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AuditClient, "newer", lambda self, metric: (self, metric), raising=False)
    monkeypatch.setattr(AuditClient, "terms", lambda self, by: (self, by))
    assert lacking(AsyncAuditClient) == {"newer", "terms"}


def test_the_fixture_asks_about_classifiers_what_the_client_does() -> None:
    assert public(AuditClient).keys() == ABOUT_CLASSIFIERS.keys() | NOT_ABOUT_CLASSIFIERS.keys()
    for name, asks in ABOUT_CLASSIFIERS.items():
        assert parameters(public(AuditClient)[name]) - FIXTURE_S_OWN.keys() <= parameters(asks), name


def test_whatever_asks_for_a_gap_asks_by_which_column() -> None:
    for asks in (AuditFixture.ask, AuditFixture.gap, AuditFixture.gap_at_most, ask_about):
        assert "by" in parameters(asks), asks
    assert "by" in {field.name for field in dataclasses.fields(GapScorer)}
