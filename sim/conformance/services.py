"""Services that sell something, and the translation of a step from audits to another service.

A case is written for audits. On another service it makes the most similar request: with the same caller, id, epsilon,
predictions and end. What has no counterpart there, such as a threshold, is left out.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from pydantic import Field

from fairwall.laws.metrics.metric import METRICS
from sim.conformance.audits import AuditStep, Gaps
from sim.conformance.by_group import BY_GROUP, COUNTED_MIN, ByGroupStep, GroupTermsStep
from sim.conformance.purchases import Predicted, PurchaseStep
from sim.conformance.releases import ReleaseStep, ReleaseTermsStep
from sim.conformance.step_base import Expect
from sim.conformance.terms import TermsStep
from sim.conformance.unseen import AuditSealed, AuditTable
from sim.conformance.world import PLACES, Service

Bought: TypeAlias = Annotated[
    AuditStep | ByGroupStep | ReleaseStep | AuditSealed | AuditTable, Field(discriminator="do")
]

_SELLS = {AuditStep.METHOD: "audit", BY_GROUP: "by_group", AuditSealed.METHOD: "audit_sealed"}
"""Name of the kind of step that sends parts of a request, by method. A release is requested in one message."""

_TERMS = {
    "audit": "AuditService/GetTerms",
    "by_group": "GroupService/GetGroupTerms",
    "sanitise": "ReleaseService/GetReleaseTerms",
}
_METHODS = {
    "audit": AuditStep.METHOD,
    "by_group": BY_GROUP,
    "sanitise": ReleaseStep.METHOD,
    "sealed": AuditSealed.METHOD,
    "table": AuditTable.METHOD,
}

_MEASURES = {"eo": "true_positive_rate", "fpr": "false_positive_rate", "oad": "accuracy"}
"""Measures of decisions, by metric without its sign."""

_OF_ANY = frozenset(
    {
        *("CALLER_UNKNOWN", "CALLER_NOT_ALLOWED", "DEADLINE_MISSING", "TOO_MANY_CALLS", "BUDGET_EXHAUSTED"),
        *("LEDGER_UNAVAILABLE", "REQUEST_ID_INVALID", "DEAL_UNKNOWN", "QUOTA_EXHAUSTED", "INTERNAL"),
    }
)
"""Reasons for refusing any request; all other reasons are about predictions."""


def asking(method: str, fields: dict[str, Any]) -> Predicted | None:
    """Return a step that calls a method with predictions; None for a method that takes none."""
    kinds: dict[str, Any] = {"audit": AuditStep, "by_group": ByGroupStep, "audit_sealed": AuditSealed}
    name = _SELLS.get(method)
    found: Predicted | None = None if name is None else kinds[name].model_validate({"do": name, **fields})
    return found


def on(service: Service, step: Any) -> Any:
    """Return a step's counterpart on a service, or None if there is none."""
    if service == "audit":
        return step
    match step:
        case AuditStep() if service in PLACES:
            return _unseen(step, service)
        case AuditStep():
            return _counted(step) if service == "by_group" else _released(step)
        case TermsStep() if service in PLACES:
            return step
        case TermsStep():
            own = {name: getattr(step, name) for name in ("name", "caller", "deployment", "expect")}
            own["caller"] = _caller(service, step.caller)
            return (
                GroupTermsStep(do="group_terms", **own)
                if service == "by_group"
                else ReleaseTermsStep(do="release_terms", **own)
            )
    changed: dict[str, Any] = {}
    for name in type(step).model_fields:
        value = getattr(step, name)
        if name == "method":
            changed[name] = _method(service, value)
            if changed[name] is None:
                return None
        elif name in ("request", "call") and not isinstance(value, dict):
            changed[name] = on(service, value)
            if changed[name] is None:
                return None
        elif name == "requests" and isinstance(value, tuple):
            changed[name] = tuple(one for each in value if (one := on(service, each)) is not None)
            if not changed[name]:
                return None
        elif name == "caller":
            changed[name] = _caller(service, value)
        elif name == "callers":
            changed[name] = tuple(_caller(service, each) for each in value)
        elif name == "answer":
            changed[name] = {key: told for key, told in value.items() if key in ("epsilon_remaining", "status")}
    return step.model_copy(update=changed)


def _method(service: Service, method: str) -> str | None:
    """Return the counterpart of a method of audits, or None if there is none."""
    if method == _METHODS["audit"]:
        return _METHODS[service]
    if method.endswith(_TERMS["audit"]):
        return method.replace(_TERMS["audit"], _TERMS.get(service, _TERMS["audit"]))
    return None if "AuditService" in method else method


def _caller(service: Service, caller: str) -> str:
    """Return the account that replaces a spender's: counts by group have one of their own for each."""
    return caller.replace("spender-", "counter-") if service == "by_group" else caller


def _unseen(step: AuditStep, service: Service) -> Gaps | None:
    about_predictions = not set(step.expect.refused) <= {*_OF_ANY, "REQUEST_ID_REUSED"}
    of_a_stream = service == "table" and {"parts", "chunk_bytes"} & step.model_fields_set
    if about_predictions or of_a_stream or step.candidates or step.rows or step.nonce or step.unknown:
        return None
    # Answers are clipped to what is possible: with large noise many are equal.
    expect = _plain(step.expect).model_copy(update={"noise": False, "close": False, "unlike": ""})
    own = {name: getattr(step, name) for name in step.model_fields_set - {"do"}} | {"expect": expect}
    return AuditSealed(do="audit_sealed", **own) if service == "sealed" else AuditTable(do="audit_table", **own)


def _counted(step: AuditStep) -> ByGroupStep | None:
    if step.threshold is not None or step.metric == "not allowed":
        return None
    own = {name: getattr(step, name) for name in Predicted.model_fields}
    if isinstance(step.epsilon, float) and 1e-12 <= step.epsilon < COUNTED_MIN:
        own["epsilon"] = COUNTED_MIN
    own |= {"caller": _caller("by_group", step.caller), "expect": _plain(step.expect)}
    return ByGroupStep(do="by_group", measures=_measures(step), **own)


def _measures(step: AuditStep) -> tuple[str | int, ...] | None:
    if isinstance(step.metric, int):
        return (step.metric,)
    metric = (step.metric or "sp").removeprefix("abs_")
    are_decisions = step.predictions.are_decisions and not 0 < (step.each_person or 0) < 1
    if are_decisions or (metric in METRICS and METRICS[metric].binary):
        return (_MEASURES.get(metric, "selection_rate"),)
    return ("scoring_rate",) if metric == "sp" else ("mean_score", "scoring_rate")


def _released(step: AuditStep) -> ReleaseStep | None:
    about_predictions = not set(step.expect.refused) <= _OF_ANY
    bounded = isinstance(step.epsilon, str) and not step.epsilon.startswith(("unit", "remaining"))
    if about_predictions or bounded or step.unknown:
        return None
    own = {name: getattr(step, name) for name in PurchaseStep.model_fields}
    return ReleaseStep(**own | {"expect": _plain(step.expect)})


def _plain(expect: Expect) -> Expect:
    return expect.model_copy(update={"probability": None})
