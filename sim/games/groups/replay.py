"""A recorded trial of the groups game: its messages in words, and what the parties claim recomputed from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from compliance.answers.groups import GroupCase, released
from compliance.games.groups import open_groups
from compliance.ledger.accountant import Budget
from compliance.noise.sampling import noise_for
from developer.groups.decode import decode
from fairwall.arrays import Floats
from fairwall.compliance.v1.group_service_pb2 import GroupRelease
from fairwall.rpc.arrays import from_message, gathered
from sim.transcripts.captions import Caption, Guess, Parts, Story, array_of, count, dealt, number
from sim.transcripts.findings import BY_DIGEST, UNHEARD, Findings
from sim.transcripts.messages import TrialMessages
from sim.transcripts.methods import short


def captions() -> Mapping[str, Caption]:
    """Return the captions by message."""
    return {
        "TakeGroupDealResponse": _take_group_deal_response,
        "GetGroupTermsResponse": _get_group_terms_response,
        "ByGroupRequest": _by_group_request,
        "ByGroupResponse": _by_group_response,
        "SubmitGroupsRequest": _submit_groups_request,
    }


@dealt
def _take_group_deal_response(story: Story, deal: Any, _: Parts) -> str:
    story.begin()
    return f"{deal.deal_id}: {count(len(deal.shares), 'group')}; ask by {deal.strategy}, epsilon {number(deal.epsilon)}"


def _get_group_terms_response(story: Story, message: Any, _: Parts) -> str:
    codes = story.kept.get("groups")
    sizes = [len(each.values) for each in message.attributes]
    if codes is not None and len(codes) == len(sizes):
        story.kept["cells"] = np.ravel_multi_index(tuple(codes), sizes)
    return f"{count(message.people, 'person')}, by {', '.join(each.name for each in message.attributes)}"


def _by_group_request(_story: Story, message: Any, _: Parts) -> str:
    header = message.header
    return (
        f"whom do {count(header.predictions.shape[0], 'model')} accept, by group, at epsilon {number(header.epsilon)}?"
    )


def _by_group_response(story: Story, message: Any, _: Parts) -> str:
    tables, rows = len(message.release.tables), sum(len(each.reach) for each in message.release.rows)
    story.answered(tables or rows, message)
    released = count(tables, "table") if tables else count(rows, "row")
    return f"{released} of {count(message.release.groups, 'group')}; ε {number(message.epsilon_charged)} charged"


def _submit_groups_request(story: Story, message: Any, _: Parts) -> str:
    guess = array_of(message.guess)
    if guess is not None:
        story.guess = Guess("person", guess, true=story.kept.get("cells"))
    return f"my guess at the groups of {count(message.guess.header.shape[0], 'person')}"


def compare(findings: Findings, trial: TrialMessages) -> None:
    """Compare counts with the groups and the seed, and the parties' reports with the values recomputed from them."""
    dealt, told = trial.cards.get("ComplianceDeal"), trial.cards.get("GroupDeal")
    guessed, reported = trial.submissions.get("SubmitGroups"), trial.submissions.get("SubmitAuditReport")
    if dealt is None or told is None or guessed is None or reported is None:
        return
    if not trial.is_heard:
        findings.not_checked(UNHEARD)
        return
    if dealt.arrays is None or not guessed.is_stored or not all(one.is_stored for one in trial.releases):
        findings.not_checked(f"what was released, and what was reported of it: {BY_DIGEST}")
        return
    findings.reports += 1
    asked, spent = _released(findings, trial, open_groups(dealt.deal, dealt.arrays), dealt.deal.groups.epsilon)
    place = f"{trial.deal_id}: compliance reports: epsilon_spent"
    findings.same(reported.place, place, reported.request.epsilon_spent, spent)
    if not asked:
        findings.wrong(guessed.place, f"{trial.deal_id}: developer reports what it asked nobody about")
        return
    guess, again = from_message(guessed.request.guess), decode(asked, np.array(told.deal.shares))
    findings.same(guessed.place, f"{trial.deal_id}: developer reports: guess", guess, again)


def _released(
    findings: Findings, trial: TrialMessages, grouped: GroupCase, epsilon: float
) -> tuple[list[tuple[Floats, GroupRelease]], float]:
    """Compare counts with the groups and their seed; return the requests with their answers, and the epsilon spent."""
    asked: dict[str, tuple[Floats, GroupRelease]] = {}
    losses = {}
    for one in trial.releases:
        if short(one.method) != "ByGroup":
            continue
        first, *parts = one.requests
        header = first.header
        decisions = gathered(header.predictions, (part.predictions_chunk for part in parts)).astype(np.float64)
        release = one.answers[0].release
        again = released(grouped.people, header, decisions, noise_for(grouped.case.seed, header.request_id))
        place = f"{trial.deal_id}: compliance releases {header.request_id}"
        mine_of, theirs_of = ([*each.tables, *each.rows] for each in (again, release))
        for mine, theirs in zip(mine_of, theirs_of, strict=True):
            findings.same(one.place, place, from_message(theirs.counts), from_message(mine.counts))
        losses[header.request_id] = grouped.loss(header.epsilon)
        asked.setdefault(header.request_id, (decisions, release))
    return list(asked.values()), Budget(epsilon).spent(Counter(losses.values()))
