"""A trial of the reveal game: its outcome, the dealer that takes it, its line, and the summary of a cell's lines."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from grpc import ServicerContext

from developer.reveal.strategies.sums import answers_needed
from fairwall.arrays import Bools, Bytes, Floats
from fairwall.game.v1 import reveal_service_pb2 as game
from fairwall.game.v1.reveal_service_pb2_grpc import RevealServiceServicer, add_RevealServiceServicer_to_server
from fairwall.laws.mechanisms.table import MECHANISM_LAWS
from fairwall.laws.metrics.metric import METRICS, stratum
from fairwall.laws.privacy.most_exposed import Sure
from fairwall.rpc.errors import Refusal
from fairwall.wire.metrics import number_of
from fairwall.wire.numbers import to_message
from fairwall.wire.queries import size_queries
from fairwall.wire.v1 import array_pb2, error_pb2
from sim.games.cards import ComplianceCards
from sim.games.game import Line
from sim.games.referee import Arrays, TableDealer, announced, check_queries, deals, in_chunks
from sim.games.reveal import score
from sim.games.reveal.deal import DeveloperCards, PublicSample, RevealDeal, TrainingTable
from sim.games.reveal.scenario import RevealScenario
from sim.games.reveal.score import RevealScore
from sim.games.submissions import (
    AuditRecord,
    AuditReport,
    bits_of,
    cards_of,
    floats_of,
    report_of,
    submission_of,
    take_guess,
    take_numbers,
)
from sim.games.summary import mean, sd
from sim.games.table import GameTable, Trial, TrialFailed, given
from sim.report.estimates import FEWEST, share_interval
from sim.scenarios.scenario import QUERIES_MAX, plain
from sim.scenarios.sweep import Cell
from sim.transcripts.messages import TrialMessages


@dataclass(frozen=True, eq=False)
class RevealGuess:
    """The developer's submission, arrays (n,) or (queries,); no accuracies where the test set is hidden."""

    baseline: Bytes
    guess: Bytes
    targeted: Bools
    polarity_known: bool
    reconstruction: Floats | None
    queries: int
    size_queries: int
    max_prediction_change: float
    accuracy_base: float | None
    accuracy_models: Floats | None
    guess_from_answers: Bytes | None
    confidence: Floats | None = None


@dataclass(frozen=True)
class SubmittedLossTest:
    """The adversary's loss test: shares in [0, 1]."""

    accuracy_advantaged: float
    accuracy_disadvantaged: float


@dataclass(frozen=True)
class RevealOutcome:
    """All submissions of one trial."""

    reveal: RevealGuess
    audits: tuple[AuditRecord, ...]
    epsilon_spent: float
    loss_test: SubmittedLossTest | None


def from_messages(
    cell: Cell[RevealScenario], _number: int, trial: TrialMessages, _secret: bytes
) -> tuple[RevealDeal, RevealOutcome]:
    """Return a trial's deal, as far as its line depends on the deal, and its outcome from the messages."""
    cards, request = cards_of(trial, "ComplianceDeal"), submission_of(trial, "SubmitReveal")
    report = report_of(trial)
    test = submission_of(trial, "SubmitLossTest") if cell.scenario.adversary.attack else None

    def given(name: str, read: Callable[[Any], Any]) -> Any:
        return read(getattr(request, name)) if request.HasField(name) else None

    guess = RevealGuess(
        baseline=bits_of(request.baseline),
        guess=bits_of(request.guess),
        targeted=bits_of(request.targeted).astype(np.bool_),
        polarity_known=request.polarity_known,
        reconstruction=given("reconstruction", floats_of),
        queries=request.queries,
        size_queries=request.size_queries,
        max_prediction_change=request.max_prediction_change,
        accuracy_base=given("accuracy_base", float),
        accuracy_models=given("accuracy_models", floats_of),
        guess_from_answers=given("guess_from_answers", bits_of),
        confidence=given("confidence", floats_of),
    )
    # A line does not depend on the developer's and the adversary's cards.
    deal = RevealDeal(
        deal_id=trial.deal_id,
        scenario=cell.scenario,
        compliance=ComplianceCards(cards["labels"].astype(np.uint8), cards["protected"].astype(np.uint8), seed=b""),
        developer=DeveloperCards(None, None, scored=False, training=None),
        adversary=None,
    )
    tested = SubmittedLossTest(test.accuracy_advantaged, test.accuracy_disadvantaged) if test is not None else None
    return deal, RevealOutcome(guess, report.audits, report.epsilon_spent, tested)


def metric_answers(audits: Iterable[AuditRecord]) -> tuple[Floats, Floats]:
    """Return the exact and the released answers to metric queries, in their order, without those to size queries."""
    exact, released = [np.empty(0)], [np.empty(0)]
    for audit in audits:
        sizes = size_queries(audit.request_id, len(audit.exact))
        exact.append(audit.exact[sizes:])
        released.append(audit.released[sizes:])
    return np.concatenate(exact), np.concatenate(released)


def check_size_queries(queries: int, report: AuditReport) -> None:
    """Raise TrialFailed if the developer's number of size queries differs from that of the answered requests' ids."""
    try:
        answered = sum(size_queries(audit.request_id, len(audit.exact)) for audit in report.audits)
    except ValueError as error:
        raise TrialFailed(f"developer must name what it asks for: {error}") from None
    if queries != answered:
        raise TrialFailed(
            f"developer says that it asked {queries} size queries, by the requests' ids it was {answered}"
        )


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


def _accuracies(request: game.SubmitRevealRequest, *, labelled: bool) -> tuple[float, Floats] | tuple[None, None]:
    """Decode the models' accuracies on the test set; Refusal unless present exactly where `labelled`."""
    if {request.HasField("accuracy_base"), request.HasField("accuracy_models")} != {labelled}:
        raise Refusal(error_pb2.REASON_SUBMISSION_INVALID)
    if not labelled:
        return None, None
    accuracies = take_numbers(request.accuracy_models, request.queries)
    if not all(0 <= share <= 1 for share in (request.accuracy_base, *accuracies)):
        raise Refusal(error_pb2.REASON_SUBMISSION_INVALID)
    return request.accuracy_base, accuracies


def _targets(message: array_pb2.Array, people: int) -> Bools:
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


_TRACE_LENGTH = 100


def record(cell: Cell[RevealScenario], trial: int, deal: RevealDeal, outcome: RevealOutcome) -> list[Line]:
    """Return the trial's line of `trials.jsonl`; the first trial of a cell also has a `trace` for figures."""
    scenario = cell.scenario
    protected = deal.compliance.protected
    guess = outcome.reveal
    score = _score(deal, guess)
    accuracies = guess.accuracy_models if guess.queries else None
    advantaged = int(protected.sum())
    line: dict[str, Any] = {
        "n": len(protected),
        "n0": len(protected) - advantaged,
        "n1": advantaged,
        "metric": scenario.compliance.metric,
        "mechanism": scenario.compliance.mechanism,
        "epsilon": plain(scenario.epsilon),
        "delta": scenario.compliance.delta,
        "queries": guess.queries,
        "size_queries": guess.size_queries,
        "strategy": scenario.developer.strategy,
        "decoder": scenario.decoder,
        "leakage": score.leakage,
        "baseline_leakage": score.baseline_leakage,
        "recovered": score.recovered,
        "exact": score.exact,
        "targeted": score.targeted,
        "targeted_recovered": score.targeted_recovered,
        "target_advantaged": bool(protected[guess.targeted][0]) if score.targeted == 1 else None,
        "max_prediction_change": guess.max_prediction_change,
        "accuracy_base": guess.accuracy_base,
        "accuracy_models": float(accuracies.mean()) if accuracies is not None else None,
        "accuracy_models_least": float(accuracies.min()) if accuracies is not None else None,
        **_errors(scenario, outcome),
        "epsilon_spent": plain(outcome.epsilon_spent),
    }
    line |= _where_it_applies(deal, outcome, score)
    if trial == 0:
        line["trace"] = _trace(deal, outcome)
    return [line]


def _where_it_applies(deal: RevealDeal, outcome: RevealOutcome, score: RevealScore) -> Line:
    scenario, guess, line = deal.scenario, outcome.reveal, dict[str, Any]()
    if math.isinf(scenario.epsilon):
        people = deal.compliance.protected[stratum(scenario.compliance.metric, deal.compliance.labels)]
        line["answers_bound"] = answers_needed(len(people), int((people == 0).sum()), _bits(scenario))
    if scenario.compliance.differencing:
        line["flagged"] = sum(audit.flagged for audit in outcome.audits)
    # Features alone give the baseline, both give the leakage: for a strategy without features, answers alone.
    if scenario.developer.public_sample:
        line["leakage_features"] = score.baseline_leakage
    if scenario.developer.public_sample or guess.guess_from_answers is not None:
        alone = guess.guess if guess.guess_from_answers is None else guess.guess_from_answers
        line["leakage_answers"] = _score(deal, replace(guess, guess=alone)).leakage
    if METRICS[scenario.compliance.metric].absolute:
        line |= {
            "polarity_known": guess.polarity_known,
            "leakage_by_size": score.leakage_by_size,
            "leakage_by_person": score.leakage_by_person,
        }
    if guess.confidence is not None:
        aimed_at = guess.targeted
        sure = Sure.of(guess.confidence[aimed_at], deal.compliance.protected[aimed_at])
        line["sure"] = [sure.disadvantaged.tolist(), sure.advantaged.tolist()]
    if outcome.loss_test is not None:
        test = outcome.loss_test
        line |= {
            "attack": "loss-test",
            "accuracy_advantaged": test.accuracy_advantaged,
            "accuracy_disadvantaged": test.accuracy_disadvantaged,
            "gap_base": 100.0 * abs(test.accuracy_advantaged - test.accuracy_disadvantaged),
        }
    return line


def _errors(scenario: RevealScenario, outcome: RevealOutcome) -> dict[str, float | None]:
    """Return the answers' errors, or None where they are choices, which are not near a gap."""
    exact, released = metric_answers(outcome.audits)
    numbers = np.isfinite(released) & np.isfinite(exact)
    error = np.abs(released[numbers] - exact[numbers])
    if not error.size or MECHANISM_LAWS[scenario.compliance.mechanism].is_choice:
        return {"query_error_mean": None, "query_error_median": None}
    return {"query_error_mean": float(error.mean()), "query_error_median": float(np.median(error))}


def _bits(scenario: RevealScenario) -> float:
    if scenario.compliance.mechanism == "pass-fail":
        return 1.0
    match scenario.compliance.precision:
        case "float64":
            return 53.0
        case "float32":
            return 24.0
        case decimals:
            return math.log2(2 * 10**decimals + 1)


def _score(deal: RevealDeal, guess: RevealGuess) -> RevealScore:
    cards, metric = deal.compliance, deal.scenario.compliance.metric
    told = (guess.guess, guess.baseline, guess.targeted, guess.polarity_known)
    return score.score(metric, cards.labels, cards.protected, *told)


def _trace(deal: RevealDeal, outcome: RevealOutcome) -> dict[str, Any]:
    """Return the first answers, groups and guessed groups for figures, and the s-bar of the paper's Figure 2."""
    exact, released = metric_answers(outcome.audits)
    inside = stratum(deal.scenario.compliance.metric, deal.compliance.labels)
    protected, reconstruction = deal.compliance.protected[inside], outcome.reveal.reconstruction
    trace: dict[str, Any] = {
        "exact": _finite(exact),
        "released": _finite(released),
        "group": deal.compliance.protected[:_TRACE_LENGTH].tolist(),
        "guess": outcome.reveal.guess[:_TRACE_LENGTH].tolist(),
    }
    if reconstruction is not None:
        height = 1 / (protected == 0).sum() + 1 / (protected == 1).sum()
        trace["s"] = np.where(protected == 0, height, 0.0)[:_TRACE_LENGTH].tolist()
        trace["reconstruction"] = reconstruction[inside][:_TRACE_LENGTH].tolist()
    return trace


def _finite(values: np.ndarray[Any, Any]) -> list[float | None]:
    return [value if math.isfinite(value) else None for value in values[:_TRACE_LENGTH].tolist()]


_MEANS = (
    "leakage",
    "baseline_leakage",
    "recovered",
    "query_error_mean",
    "accuracy_base",
    "accuracy_models",
    "accuracy_models_least",
    "answers_bound",
    "leakage_features",
    "leakage_answers",
    "flagged",
    "max_prediction_change",
    "leakage_by_size",
    "leakage_by_person",
    "gap_base",
)


def summarise(swept: Mapping[str, Any], lines: Sequence[Line]) -> Line:
    """Return the summary of a cell, from its lines of `trials.jsonl` alone.

    - Keys of a trial are means over trials, `query_error_median` the median; `exact` is the number of exact trials.
      `leakage_sd` is the standard deviation over trials, n - 1 in the denominator; None for one trial.
    - `answers` and `answers_most` are the mean and the largest number of answers of a trial, size queries included.
    - `targeted_rate`, where a trial aims at one person, is the share guessed right, with the 95% interval
      `targeted_low` to `targeted_high` (None for fewer than five trials); `targeted_balanced` is the mean of both
      groups' shares.
    - `person_risk`, `surest_factor` and `surest_right` are about all trials' people together, see `Sure`.

    Keys that no trial has are left out: answers that are choices, or all refused, have no error.
    """
    first = lines[0]
    cell: dict[str, Any] = dict(swept)
    cell |= {key: first[key] for key in ("metric", "mechanism", "epsilon", "strategy", "decoder", "queries")}
    cell["trials"] = len(lines)
    for key in _MEANS:
        if (found := mean(lines, key)) is not None:
            cell[key] = found
    cell["leakage_sd"] = sd(lines, "leakage")
    cell["exact"] = sum(line["exact"] for line in lines)
    answers = [line["queries"] + line["size_queries"] for line in lines]
    cell["answers"], cell["answers_most"] = float(np.mean(answers)), max(answers)
    if all(line["targeted"] == 1 for line in lines):
        right = sum(line["targeted_recovered"] for line in lines)
        cell["targeted_rate"] = right / len(lines)
        enough = len(lines) >= FEWEST
        cell["targeted_low"], cell["targeted_high"] = share_interval(right, len(lines)) if enough else (None, None)
        groups = [
            [x["targeted_recovered"] for x in lines if x["target_advantaged"] is group] for group in (True, False)
        ]
        if all(groups):
            cell["targeted_balanced"] = float(np.mean([np.mean(hits) for hits in groups]))
    medians = [line["query_error_median"] for line in lines if line["query_error_median"] is not None]
    if medians:
        cell["query_error_median"] = float(np.median(medians))
    if sure := sure_of(lines):
        cell["person_risk"] = sure.named
        cell["surest_factor"], cell["surest_right"] = sure.surest()
    cell["n"] = first["n"]
    cell["n0"] = mean(lines, "n0")
    cell["epsilon_spent"] = first["epsilon_spent"]
    return cell


def sure_of(lines: Sequence[Line]) -> Sure | None:
    """Return the developer's confidence about all people of these trials, or None where no line has it."""
    told = [Sure(*map(np.array, line["sure"])) for line in lines if line.get("sure")]
    return Sure.together(told) if told else None
