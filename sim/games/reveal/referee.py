"""The dealer of the reveal game: it deals people and models, and takes guesses and the loss test. It scores nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from grpc import ServicerContext
from numpy.typing import NDArray

from fairwall.game.v1 import reveal_service_pb2 as game
from fairwall.game.v1.reveal_service_pb2_grpc import RevealServiceServicer, add_RevealServiceServicer_to_server
from fairwall.rpc.errors import Refusal
from fairwall.wire.metrics import number_of
from fairwall.wire.precision import to_message
from fairwall.wire.v1 import array_pb2, error_pb2
from sim.games.dealer import TableDealer, deals
from sim.games.referee import Arrays, announced, check_queries, in_chunks
from sim.games.reveal.answers import check_size_queries
from sim.games.reveal.deal import DeveloperCards, PublicSample, RevealDeal, TrainingTable
from sim.games.reveal.outcome import RevealGuess, RevealOutcome, SubmittedLossTest
from sim.games.submissions import take_guess, take_numbers
from sim.games.table import GameTable, Trial, given
from sim.scenarios.scenario import QUERIES_MAX


@dataclass
class _RevealTrial(Trial):
    deal: RevealDeal
    released: bool = False
    request: game.SubmitRevealRequest | None = None
    submitted: RevealGuess | None = None
    loss_test: SubmittedLossTest | None = None

    @property
    def ended(self) -> bool:
        return super().ended and (self.deal.adversary is None or self.loss_test is not None)

    @property
    def missing(self) -> str:
        dealt_in = self.deal.adversary is not None
        guessed = self.submitted is not None
        awaited = {"compliance": self.served, "developer": guessed and (self.released or not dealt_in)}
        if dealt_in and (self.released or not guessed):
            awaited["adversary"] = self.loss_test is not None
        late = [party for party, done in awaited.items() if not done]
        return " and ".join(late) or "compliance"


def _rows(table: TrainingTable | PublicSample) -> Arrays:
    return {"features": table.features, "labels": table.labels}


def _arrays(cards: DeveloperCards) -> Arrays:
    """Return the developer's arrays by name, without a hidden test set's."""
    own = {"features": cards.features, "labels": cards.labels}
    public = {f"public_{name}": rows for name, rows in _rows(cards.public).items()} if cards.public is not None else {}
    return {name: rows for name, rows in (own | public).items() if rows is not None}


def _developer_deal(trial: _RevealTrial) -> tuple[game.DeveloperDeal, Arrays]:
    deal, scenario, cards = trial.deal, trial.deal.scenario, trial.deal.developer
    told, sample = "precision" in scenario.developer.knows, cards.public
    dealt = game.DeveloperDeal(
        seed=cards.seed,
        metric=number_of(scenario.compliance.metric),
        epsilon=scenario.epsilon,
        batch_delta=scenario.batch_delta,
        mechanism=scenario.compliance.mechanism,
        reveal_max=scenario.compliance.reveal_max if scenario.compliance.reveal_max < 1 else None,
        precision=to_message(scenario.compliance.precision) if told else None,
        disadvantaged=cards.disadvantaged,
        strategy=scenario.developer.strategy,
        decoder=scenario.decoder,
        queries=_query_count(scenario.queries),
        perturbation=scenario.perturbation,
        base_model=game.BASE_MODEL_IDENTITY if cards.scored else game.BASE_MODEL_LOGISTIC,
        training_digest=cards.training.digest if cards.training is not None else "",
        release_model=deal.adversary is not None,
        public_disadvantaged_rows=sample.disadvantaged_rows if sample is not None else 0,
    )
    return dealt, _arrays(cards)


def _adversary_deal(trial: _RevealTrial) -> tuple[game.AdversaryDeal, Arrays]:
    cards, (attack, *_) = given(trial.deal.adversary), trial.deal.scenario.adversary.attack
    return game.AdversaryDeal(attack=attack, disadvantaged_rows=cards.disadvantaged_rows), _rows(cards)


def _query_count(queries: int | str) -> game.QueryCount:
    if isinstance(queries, int):
        return game.QueryCount(fixed=queries)
    if queries == "needed":
        return game.QueryCount(at_most=QUERIES_MAX)
    return game.QueryCount(people_less={"n": 0, "n-1": 1}[queries])


def _accuracies(
    request: game.SubmitRevealRequest, *, labelled: bool
) -> tuple[float, NDArray[np.float64]] | tuple[None, None]:
    """Decode the models' accuracies on the test set; Refusal unless present exactly where `labelled`."""
    if {request.HasField("accuracy_base"), request.HasField("accuracy_models")} != {labelled}:
        raise Refusal(error_pb2.REASON_SUBMISSION_INVALID)
    if not labelled:
        return None, None
    accuracies = take_numbers(request.accuracy_models, request.queries)
    if not all(0 <= share <= 1 for share in (request.accuracy_base, *accuracies)):
        raise Refusal(error_pb2.REASON_SUBMISSION_INVALID)
    return request.accuracy_base, accuracies


def _targets(message: array_pb2.Array, people: int) -> NDArray[np.bool_]:
    values = take_guess(message, (people,)).astype(np.bool_)
    if not values.any():
        raise Refusal(error_pb2.REASON_SUBMISSION_INVALID)
    return values


class RevealDealer(TableDealer[_RevealTrial, RevealDeal, RevealOutcome], RevealServiceServicer):
    """The RevealService, for one deal at a time."""

    kind, serve = _RevealTrial, staticmethod(add_RevealServiceServicer_to_server)

    TakeDeveloperDeal = deals(game.TakeDeveloperDealResponse, _developer_deal, lambda trial: trial.served)
    TakeAdversaryDeal = deals(
        game.TakeAdversaryDealResponse,
        _adversary_deal,
        lambda trial: trial.released and trial.deal.adversary is not None,
    )

    def __init__(self, table: GameTable) -> None:
        super().__init__(table)
        self._training: dict[str, TrainingTable] = {}

    def GetTrainingTable(
        self,
        request: game.GetTrainingTableRequest,
        context: ServicerContext,
    ) -> Iterator[game.GetTrainingTableResponse]:
        """Send the developer the training table of its base model."""
        response = game.GetTrainingTableResponse
        with self.table.changing():
            table = self._training.get(request.training_digest)
        if table is None:
            raise Refusal(error_pb2.REASON_DEAL_UNKNOWN)
        arrays = _rows(table)
        yield response(table=game.TrainingTable(**announced(arrays)))
        yield from in_chunks(response, arrays)

    def SubmitReveal(self, request: game.SubmitRevealRequest, context: ServicerContext) -> game.SubmitRevealResponse:
        """Take the developer's guess."""
        with self.turn(request.deal_id, lambda trial: trial.served and trial.request in (None, request)) as trial:
            people = len(trial.deal.compliance.labels)
            accuracy_base, accuracies = _accuracies(request, labelled=trial.deal.developer.labels is not None)
            if not 0 <= request.max_prediction_change <= 1:
                raise Refusal(error_pb2.REASON_SUBMISSION_INVALID)
            trial.submitted = RevealGuess(
                baseline=take_guess(request.baseline, (people,)),
                guess=take_guess(request.guess, (people,)),
                targeted=_targets(request.targeted, people),
                polarity_known=request.polarity_known,
                reconstruction=(
                    take_numbers(request.reconstruction, people) if request.HasField("reconstruction") else None
                ),
                queries=request.queries,
                size_queries=request.size_queries,
                max_prediction_change=request.max_prediction_change,
                accuracy_base=accuracy_base,
                accuracy_models=accuracies,
                guess_from_answers=(
                    take_guess(request.guess_from_answers, (people,))
                    if request.HasField("guess_from_answers")
                    else None
                ),
                confidence=take_numbers(request.confidence, people) if request.HasField("confidence") else None,
            )
            trial.request = request
            return game.SubmitRevealResponse()

    def ReleaseModel(self, request: game.ReleaseModelRequest, context: ServicerContext) -> game.ReleaseModelResponse:
        """Open the developer's model to the adversary."""
        with self.turn(request.deal_id, lambda trial: None not in (trial.deal.adversary, trial.submitted)) as trial:
            trial.released = True
            return game.ReleaseModelResponse()

    def SubmitLossTest(
        self,
        request: game.SubmitLossTestRequest,
        context: ServicerContext,
    ) -> game.SubmitLossTestResponse:
        """Take the adversary's loss test."""
        shares = (request.accuracy_advantaged, request.accuracy_disadvantaged)
        if not all(0 <= share <= 1 for share in shares):
            raise Refusal(error_pb2.REASON_SUBMISSION_INVALID)
        with self.turn(request.deal_id, lambda trial: trial.released) as trial:
            trial.loss_test = SubmittedLossTest(*shares)
            return game.SubmitLossTestResponse()

    def play(self, deal: RevealDeal, seconds: float) -> RevealOutcome:
        """Play one deal, see `Dealer`, with its training table to be fetched."""
        training = deal.developer.training
        with self.table.changing():
            self._training = {training.digest: training} if training is not None else {}
        return super().play(deal, seconds)

    def outcome(self, trial: _RevealTrial) -> RevealOutcome:
        """Return the outcome of a finished trial; TrialFailed if the numbers of queries disagree."""
        guess, report = given(trial.submitted), given(trial.report)
        check_queries(guess.size_queries + guess.queries, report)
        check_size_queries(guess.size_queries, report)
        return RevealOutcome(guess, report.audits, report.epsilon_spent, trial.loss_test)
