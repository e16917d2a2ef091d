"""A recorded trial of the reveal game: its messages in words, the parties' reports recomputed, another decoder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from adversary.attacks.loss_attack import loss_test
from developer.reveal.logistic_models import Model, accuracy, cross_fitted, identity, logistic
from developer.reveal.strategies import STRATEGIES, takes
from fairwall.arrays import Bytes, Floats
from fairwall.game.v1 import reveal_service_pb2 as game
from fairwall.rpc.arrays import from_message
from fairwall.wire.metrics import name_of
from fairwall.wire.queries import size_queries
from sim.games.game import Compare, Redecoding
from sim.games.reveal.score import leakage, score
from sim.transcripts.captions import Caption, Guess, Parts, Story, always, array_of, count, dealt
from sim.transcripts.findings import BY_DIGEST, TOLERANCE, UNHEARD, Findings
from sim.transcripts.messages import Cards, PlayedSession, TrialMessages


def captions() -> Mapping[str, Caption]:
    """Return the captions by message."""
    return {
        "TakeDeveloperDealResponse": _take_developer_deal_response,
        "GetTrainingTableResponse": _get_training_table_response,
        "SubmitRevealRequest": _submit_reveal_request,
        "TakeAdversaryDealResponse": _take_adversary_deal_response,
        "SubmitLossTestRequest": _submit_loss_test_request,
        "GetTrainingTableRequest": always("asks for the training table"),
        "ReleaseModelRequest": always("releases its base model"),
    }


@dealt
def _take_developer_deal_response(_story: Story, deal: Any, _: Parts) -> str:
    shown = deal.HasField("features")
    people = count(deal.features.shape[0], "person") if shown else "people whom you are not shown"
    match deal.queries.WhichOneof("count"):
        case "fixed":
            queries = count(deal.queries.fixed, "query")
        case "at_most":
            queries = "as many queries as it takes"
        case _:
            queries = "a query a person"
    decoder = f" with decoder {deal.decoder}" if deal.decoder else ""
    return f"{deal.deal_id}: {people}, no protected attribute; play {deal.strategy}{decoder}, {queries}"


def _get_training_table_response(_story: Story, message: Any, _: Parts) -> str:
    return f"{count(message.table.features.shape[0], 'row')} to train on"


def _submit_reveal_request(story: Story, message: Any, _: Parts) -> str:
    guess, baseline = array_of(message.guess), array_of(message.baseline)
    people = len(guess) if guess is not None else 0
    protected = story.kept.get("protected")
    if guess is not None:
        story.guess = Guess("person", guess, baseline, protected, ("disadvantaged", "advantaged"))
    if protected is None or guess is None or baseline is None or len(protected) != people:
        return f"guesses the groups of {count(people, 'person')}"
    right = int((guess == protected).sum())
    before = int((baseline == protected).sum())
    score = leakage(guess.astype(np.uint8), protected.astype(np.uint8))
    return (
        f"guesses who belongs where: right for {right} of {people}, leakage {score:.1f}% "
        f"(without a query right for {before})"
    )


@dealt
def _take_adversary_deal_response(_story: Story, deal: Any, _: Parts) -> str:
    return f"{deal.deal_id}: {count(deal.labels.shape[0], 'public row')}; play {deal.attack}"


def _submit_loss_test_request(_story: Story, message: Any, _: Parts) -> str:
    first, second = 100 * message.accuracy_advantaged, 100 * message.accuracy_disadvantaged
    return f"accuracy {first:.1f}% on the advantaged, {second:.1f}% on the disadvantaged"


def compare_statistics(findings: Findings, trial: TrialMessages, base: BaseModel) -> None:
    """Compare the number of queries, the models' accuracies, and their distance from the base model."""
    dealt, submitted = trial.cards.get("DeveloperDeal"), trial.submissions.get("SubmitReveal")
    if dealt is None or submitted is None:
        return
    if not trial.is_heard:
        findings.not_checked(UNHEARD)
        return
    where, request, place = submitted.place, submitted.request, f"{trial.deal_id}: developer reports"
    findings.reports += 1
    batches = sorted((one for one in trial.batches.values() if one.is_answered), key=lambda one: one.asked)
    asked = sum(batch.models for batch in batches)
    try:
        sizes = [size_queries(batch.request_id, batch.models) for batch in batches]
    except ValueError as error:
        findings.wrong(where, f"{place}: {error}")
        return
    findings.same(where, f"{place}: queries", request.queries, asked - sum(sizes))
    findings.same(where, f"{place}: size_queries", request.size_queries, sum(sizes))
    predictions = [batch.predictions for batch in batches if batch.predictions is not None]
    if dealt.arrays is None or not submitted.is_stored or len(predictions) < len(batches):
        findings.not_checked(f"what the developer reported of its models: {BY_DIGEST}")
        return
    if not predictions:
        return
    rows = np.concatenate(predictions)
    metric_rows = np.concatenate([batch[count:] for batch, count in zip(predictions, sizes, strict=True)])
    if request.HasField("accuracy_models"):
        reported = from_message(request.accuracy_models).astype(np.float64)
        findings.same(where, f"{place}: accuracy_models", reported, accuracy(metric_rows, dealt.arrays["labels"]))
    known = base.scores(dealt, rows)
    if known is None:
        findings.not_checked("accuracy_base, max_prediction_change: the base model's training table is not stored")
        return
    scores, slack = known
    if request.HasField("accuracy_base"):
        share = float(accuracy(scores, dealt.arrays["labels"]))
        # A score close to 1/2 may be decided differently on another processor.
        unsure = float(np.mean(np.abs(scores - 0.5) <= slack)) if slack else 0.0
        findings.between(where, f"{place}: accuracy_base", request.accuracy_base, share - unsure, share + unsure)
    change = float(np.abs(metric_rows - scores).max(initial=0.0))
    what = f"{place}: max_prediction_change"
    findings.between(where, what, request.max_prediction_change, change - slack, change + slack)


class BaseModel:
    """The base model's scores in the trials of a session; it is trained once for each training table."""

    def __init__(self, session: PlayedSession) -> None:
        self._session = session
        self._trained: dict[str, Model] = {}

    def scores(self, dealt: Cards, rows: Floats) -> tuple[Floats, float] | None:
        """Return the scores, (people,), and their largest distance from the developer's; None without a stored table.

        `rows`, (models, people), are the predictions, the first query first.
        """
        cards, digest = dealt.arrays or {}, dealt.deal.training_digest
        if "features" not in cards:
            return rows[0], 0.0  # the first query is about the base model itself, see `developer.reveal.hidden`
        features = cards["features"].astype(np.float64)
        if dealt.deal.base_model == game.BASE_MODEL_IDENTITY:
            return identity(features), 0.0
        if not digest:
            return cross_fitted(features, cards["labels"]), TOLERANCE
        if digest not in self._trained:
            table = self._session.table(digest)
            if table is None:
                return None
            self._trained[digest] = logistic(table["features"].astype(np.float64), table["labels"].astype(np.uint8))
        return self._trained[digest](features), TOLERANCE


def compare_loss_test(findings: Findings, trial: TrialMessages) -> None:
    """Compare the adversary's accuracies on both groups."""
    dealt, submitted = trial.cards.get("AdversaryDeal"), trial.submissions.get("SubmitLossTest")
    if dealt is None or submitted is None:
        return
    cards, scores = dealt.arrays, None
    for served in trial.served:
        if cards and served.features is not None and np.array_equal(served.features, cards["features"]):
            scores = served.scores
    if cards is None or scores is None:
        findings.not_checked(f"the adversary's loss test: {BY_DIGEST}, or it asked about other rows")
        return
    findings.reports += 1
    features, labels = cards["features"].astype(np.float64), cards["labels"].astype(np.uint8)
    again = loss_test(lambda _: scores, features, labels, dealt.deal.disadvantaged_rows)
    for name in ("accuracy_advantaged", "accuracy_disadvantaged"):
        what = f"{trial.deal_id}: adversary reports: {name}"
        findings.same(submitted.place, what, getattr(submitted.request, name), getattr(again, name))


def comparisons(session: PlayedSession) -> Sequence[Compare]:
    """Return the comparisons for the trials of a session; a base model is trained once for all of them."""
    return (partial(compare_statistics, base=BaseModel(session)), compare_loss_test)


def _refusal(deal: game.DeveloperDeal, decoder: str) -> str | None:
    allowed = STRATEGIES[deal.strategy].decoders
    if takes(deal.strategy, decoder):
        return None
    works = f"works with {' or '.join(allowed)}" if allowed else "reads the answers itself"
    return f"strategy {deal.strategy} {works}, not with {decoder!r}"


def _rename(answer: Any, decoder: str) -> None:
    if isinstance(answer, game.TakeDeveloperDealResponse) and answer.WhichOneof("part") == "deal":
        answer.deal.decoder = decoder


def _score(
    deal: game.DeveloperDeal, labels: Bytes, protected: Bytes, guess: game.SubmitRevealRequest
) -> tuple[float, float]:
    guessed, baseline, targeted = (from_message(part) for part in (guess.guess, guess.baseline, guess.targeted))
    scored = score(
        name_of(deal.metric),
        labels,
        protected,
        guessed.astype(np.uint8),
        baseline.astype(np.uint8),
        targeted.astype(np.bool_),
        guess.polarity_known,
    )
    return scored.leakage, scored.baseline_leakage


REDECODING = Redecoding(deal="Developer", submission="SubmitReveal", refusal=_refusal, rename=_rename, score=_score)
