"""A recorded trial of the release game: its messages in words, and what the parties claim recomputed from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compliance.answers.releases import AttributeRelease, HandedModel
from compliance.games.release import open_release
from compliance.ledger.accountant import Budget, Loss
from compliance.mechanisms import MECHANISMS
from compliance.records.people import Records
from developer.release import beliefs, mixture
from fairwall.rpc.arrays import from_message, gathered
from fairwall.wire.metrics import name_of
from sim.transcripts.captions import Caption, Guess, Parts, Story, array_of, cards_of, count, dealt, number
from sim.transcripts.findings import BY_DIGEST, UNHEARD, Findings
from sim.transcripts.messages import TrialMessages
from sim.transcripts.methods import short


def captions() -> Mapping[str, Caption]:
    """Return the captions by message."""
    return {
        "TakeReleaseDealResponse": _take_release_deal_response,
        "SanitiseRequest": lambda _story, message, _: (
            f"their sensitive columns, sanitised at epsilon {number(message.epsilon)}?"
        ),
        "SanitiseResponse": _sanitise_response,
        "HandModelRequest": lambda _story, message, _: (
            f"my model: {count(message.header.nodes.shape[0], 'node')} of trees"
        ),
        "HandModelResponse": lambda _story, message, _: (
            f"accuracy {100 * message.utilities[0]:.1f}%" if message.utilities else "taken"
        ),
        "SubmitBeliefsRequest": _submit_beliefs_request,
    }


@dealt
def _take_release_deal_response(story: Story, deal: Any, rest: Parts) -> str:
    story.kept |= cards_of(deal, rest)
    story.begin()
    story.kept["group_column"] = np.flatnonzero([each.groups for each in deal.terms.columns])
    people, columns = count(deal.labels.shape[0], "person"), count(len(deal.terms.columns), "sensitive column")
    asked = f", {count(deal.terms.queried.queries, 'query')} about them" if deal.terms.HasField("queried") else ""
    return f"{deal.deal_id}: {people} to train on, {columns} released by {deal.terms.protocol}{asked}"


def _sanitise_response(_story: Story, message: Any, _: Parts) -> str:
    header = message.header
    return f"{count(header.encoded.shape[0], 'row')} of bits, cost {number(header.epsilon_charged)}"


def _submit_beliefs_request(story: Story, message: Any, _: Parts) -> str:
    guess, before = array_of(message.from_everything), array_of(message.from_release)
    if guess is not None:
        columns, groups = story.kept.get("release"), story.kept.get("group_column", np.empty(0))
        true = columns[:, groups[0]] if columns is not None and len(groups) else None
        story.guess = Guess("person", guess, before, true, ("disadvantaged", "advantaged"))
    return f"who of {count(message.from_everything.header.shape[0], 'person')} is advantaged, guessed"


def compare(findings: Findings, trial: TrialMessages) -> None:
    """Compare releases with the seed, and reports with the values recomputed from the release and the model."""
    dealt, told = trial.cards.get("ComplianceDeal"), trial.cards.get("ReleaseDeal")
    guessed, reported = trial.submissions.get("SubmitBeliefs"), trial.submissions.get("SubmitAuditReport")
    if dealt is None or told is None or guessed is None or reported is None:
        return
    if not trial.is_heard:
        findings.not_checked(UNHEARD)
        return
    stored = guessed.is_stored and all(one.is_stored for one in trial.releases)
    if dealt.arrays is None or told.arrays is None or not stored:
        findings.not_checked(f"what was released, and what was reported of it: {BY_DIGEST}")
        return
    findings.reports += 1
    again = open_release(dealt.deal, dealt.arrays)
    release = _released(findings, trial, dealt.deal, again.release)
    _model(findings, trial, dealt.deal, dealt.arrays, again.model)
    _beliefs(findings, trial, told.deal, told.arrays, release)


def _released(findings: Findings, trial: TrialMessages, deal: Any, release: AttributeRelease) -> NDArray[Any] | None:
    """Compare releases with one another and with the seed; return the first of them, if any."""
    first = None
    seen: dict[str, NDArray[Any]] = {}
    for one in trial.releases:
        if short(one.method) != "Sanitise":
            continue
        (asked,) = one.requests
        header, *parts = one.answers
        encoded = gathered(header.header.encoded, (part.encoded_chunk for part in parts))
        place = f"{trial.deal_id}: compliance releases {asked.request_id}"
        before = seen.setdefault(asked.request_id, encoded)
        if not np.array_equal(before, encoded):
            findings.wrong(one.place, f"{place} a second time, and otherwise")
        if deal.noise_seeded:
            findings.same(one.place, place, encoded, release.sanitised(asked.request_id, asked.epsilon))
        first = encoded if first is None else first
    if not deal.noise_seeded and seen:
        findings.not_checked("what was released: its randomness came from the operating system")
    return first


def _model(
    findings: Findings, trial: TrialMessages, deal: Any, arrays: dict[str, NDArray[Any]], model: HandedModel
) -> None:
    """Compare utilities and rates with the model's decisions; add its decisions to the batches."""
    reported = trial.submissions["SubmitAuditReport"]
    place = f"{trial.deal_id}: compliance reports"
    for one in trial.releases:
        if short(one.method) == "HandModel":
            first, *parts = one.requests
            nodes = gathered(first.header.nodes, (part.nodes_chunk for part in parts))
            model.hand(nodes, sees_attributes=first.header.sees_attributes)
    if not model.utilities:
        findings.wrong(reported.place, f"{place}: no model was handed over")
        return
    findings.same(reported.place, f"{place}: utilities", list(reported.request.utilities), list(model.utilities))
    metrics = tuple(name_of(number) for number in deal.release.audits.metrics)
    labels, protected = (arrays[name].astype(np.uint8) for name in ("labels", "protected"))
    records = Records(labels=labels, protected=protected, metrics=metrics)
    rates = list(model.group_rates(records))
    findings.same(reported.place, f"{place}: group_rates", list(reported.request.group_rates), rates)
    # Batches are about this model, and no message has its predictions: exact gaps are compared by these.
    decisions = model.decisions[np.newaxis].astype(np.float64)
    trial.batches |= {name: replace(batch, predictions=decisions) for name, batch in trial.batches.items()}
    _account(findings, trial, deal)


def _account(findings: Findings, trial: TrialMessages, deal: Any) -> None:
    """Compare the budget spent with the costs of releases and queries, and their sum with the budget."""
    reported, terms = trial.submissions["SubmitAuditReport"], deal.release.terms
    place = f"{trial.deal_id}: compliance reports"
    asked = {one.requests[0].request_id: one for one in trial.releases if short(one.method) == "Sanitise"}
    losses = Counter(Loss(one.requests[0].epsilon) for one in asked.values())
    for batch in trial.queried.values():
        if batch.is_answered:
            losses[MECHANISMS[terms.queried.mechanism].cost(batch.epsilon, 0.0)] += 1
    budget = Budget(terms.budget)
    spent = budget.spent(losses)
    findings.same(reported.place, f"{place}: release_spent", reported.request.release_spent, spent)
    if spent > budget.epsilon:
        text = f"release and queries come to {spent!r}, more than the budget of {budget.epsilon!r}"
        findings.wrong(reported.place, f"{trial.deal_id}: {text}")


def _beliefs(
    findings: Findings, trial: TrialMessages, deal: Any, arrays: dict[str, NDArray[Any]], encoded: NDArray[Any] | None
) -> None:
    submitted = trial.submissions["SubmitBeliefs"]
    place, request = f"{trial.deal_id}: developer reports", submitted.request
    features, labels = arrays["features"].astype(np.float64), arrays["labels"].astype(np.uint8)
    believed = beliefs.believe(deal.terms, features, labels, encoded)
    for name in ("from_release", "from_everything"):
        findings.same(
            submitted.place, f"{place}: {name}", from_message(getattr(request, name)), getattr(believed, name)
        )
    findings.same(submitted.place, f"{place}: consistent", request.consistent, believed.consistent)
    _mixture(findings, trial, deal, believed)
    batches = (*trial.batches.values(), *trial.queried.values())
    queries = sum(batch.models for batch in batches if batch.is_answered)
    findings.same(submitted.place, f"{place}: queries", request.queries, queries)


def _mixture(findings: Findings, trial: TrialMessages, deal: Any, believed: beliefs.AttributeGuesses) -> None:
    submitted, asked = trial.submissions["SubmitBeliefs"], [one for one in trial.queried.values() if one.is_answered]
    if not deal.terms.HasField("queried"):
        return
    if len(asked) != 1 or asked[0].predictions is None or asked[0].answer is None:
        findings.not_checked("guesses from release and queries whose queries are not one batch, or not stored")
        return
    gaps = from_message(asked[0].answer.gaps).astype(np.float64)
    again = mixture.from_mixture(deal.terms.queried, believed, asked[0].predictions, gaps)
    place = f"{trial.deal_id}: developer reports: from_mixture"
    findings.same(submitted.place, place, from_message(submitted.request.from_mixture), again)
