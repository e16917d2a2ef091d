"""What parties reported to the referee, and what ``trials.jsonl`` says of it, computed again from the messages.

Compliance reports exact gaps: they follow from the deal and from the predictions that it was sent, or got from the
developer's models. Sums are taken in the order that the protocol fixes, so they are the same bit for bit. The developer
reports its models' statistics: they follow from the same predictions and the base model, which is trained again where
no message has its scores. A line of ``trials.jsonl`` follows from the deal and what was submitted. What nothing tells
is listed as not checked.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adversary.attacks.loss_test import loss_test
from compliance.accountant import FREE, Budget
from compliance.bounding import bounded
from compliance.differencing import Detector
from compliance.mechanisms import MECHANISMS
from compliance.mechanisms.mechanism import Reusable
from compliance.metrics import gaps
from compliance.records import Records
from developer.base_model import Model, accuracy, cross_fitted, identity, logistic
from fairwall.game.v1 import referee_service_pb2 as game
from fairwall.laws.metric import find_metric
from fairwall.rpc.arrays import from_message
from fairwall.tables.errors import DataError
from fairwall.wire.metrics import name_of
from sim import inference_deal
from sim.deal import ComplianceCards, Deal, DealError, DeveloperCards
from sim.differences import TOLERANCE
from sim.games import inference, reveal
from sim.plan import Cell, Plan, ScenarioError
from sim.plan import read as read_plan
from sim.referee import LossTest, Outcome, RevealGuess
from sim.results import read_trials, schedule
from sim.table import AuditRecord, AuditReport
from sim.transcripts import Transcript
from sim.trial_messages import Batch, Cards, Session, Submission, TrialMessages

_SERVED = 1e-5
"""How far a score in single precision may be from the same one in another batch."""

_LOGARITHMS = 1e-9
"""How far apart the inference game's figures may be, for each 1 that they have: logarithms and products of matrices
differ in their last bits from one processor to another. Sums of the reveal game do not."""

_UNHEARD = "reports of trials whose queries are in no transcript to their end"
_BY_DIGEST = "arrays were recorded by their digest alone"


class Contradiction(NamedTuple):
    """Something that is reported otherwise than it follows: where it is reported, and what."""

    where: str
    text: str


@dataclass(frozen=True)
class Recomputed:
    """What came of it.

    Parameters
    ----------
    contradictions : tuple of Contradiction
    notes : tuple of str
        What could not be computed again, and why.
    reports : int
        How many reports and lines were compared.
    """

    contradictions: tuple[Contradiction, ...]
    notes: tuple[str, ...]
    reports: int


@dataclass
class _Check:
    """What was found so far."""

    contradictions: list[Contradiction] = field(default_factory=list)
    unchecked: Counter[str] = field(default_factory=Counter)
    reports: int = 0

    def same(self, where: str, what: str, reported: Any, again: Any) -> None:
        """Compare a value, or arrays of them."""
        if isinstance(again, np.ndarray):
            self._same_arrays(where, what, np.asarray(reported), again)
        elif not (reported == again or (reported != reported and again != again)):
            self.wrong(where, f"{what} is {reported!r}, recomputed {again!r}")

    def wrong(self, where: str, text: str) -> None:
        self.contradictions.append(Contradiction(where, text))

    def not_checked(self, text: str) -> None:
        self.unchecked[text] += 1

    def _same_arrays(self, where: str, what: str, reported: NDArray[Any], again: NDArray[Any]) -> None:
        if reported.shape != again.shape:
            self.wrong(where, f"{what} has shape {reported.shape}, recomputed {again.shape}")
            return
        unlike = np.flatnonzero(~((reported == again) | ((reported != reported) & (again != again))))
        if len(unlike):
            at, more = unlike[0], f", and {len(unlike) - 1} more" * (len(unlike) > 1)
            self.wrong(
                where, f"{what}[{at}] is {float(reported.flat[at])!r}, recomputed {float(again.flat[at])!r}{more}"
            )


def recompute(folder: Path, sessions: Mapping[str, Mapping[str, Transcript]]) -> Recomputed:
    """Compute the reports of a run again.

    Parameters
    ----------
    folder : Path
        The run's.
    sessions : mapping of str to mapping of str to Transcript
        The transcripts by number, then by party.

    Raises
    ------
    OSError
        If a file cannot be read.
    """
    check = _Check()
    played = [Session(parties) for parties in sessions.values()]
    # A trial that was broken off is played again, in a later session.
    last = {deal_id: session for session in played for deal_id in session.deals}
    lines = _lines(check, folder)
    for session in played:
        base = _Base(session)
        unread = [*session.unread]
        for deal_id in session.deals:
            trial = session.trial(deal_id)
            unread += trial.unread
            for party in (_compliance, partial(_developer_of_reveal, base), _developer_of_inference, _adversary):
                try:
                    party(check, trial)
                # What was sent and taken need not make sense: somebody may have written it for us.
                except (ValueError, LookupError, TypeError, ArithmeticError) as error:
                    check.not_checked(f"{deal_id}: its messages do not fit together: {error!r}")
            if lines is not None and last[deal_id] is session:
                lines.compare(trial)
        for text in unread:
            check.not_checked(f"what cannot be understood: {text}")
    if lines is not None:
        lines.close(whole=all("referee" in parties and parties["referee"].is_whole for parties in sessions.values()))
    notes = [f"not checked: {text}" + f" (in {times} trials)" * (times > 1) for text, times in check.unchecked.items()]
    if check.reports:
        notes.append("exempt: whom a party guesses and aims at is its own, how long a trial took the referee's")
    return Recomputed(tuple(check.contradictions), tuple(notes), check.reports)


# What compliance reports.


def _compliance(check: _Check, trial: TrialMessages) -> None:
    """Compare each batch's exact gaps, answers and cost, in the order of their charges, and what they come to."""
    dealt = trial.cards.get("ComplianceDeal")
    if dealt is None:
        return
    report = trial.submissions.get("SubmitAuditReport")
    if report is None:
        check.not_checked("what compliance answered in trials that it made no report of")
        return
    if not trial.is_heard:
        check.not_checked(_UNHEARD)
        return
    if dealt.arrays is None or not report.is_stored:
        check.not_checked(f"what compliance reported: {_BY_DIGEST}")
        return
    check.reports += 1
    deal, where = dealt.deal, report.place
    records = Records(dealt.arrays["labels"].astype(np.uint8), dealt.arrays["protected"].astype(np.uint8), ())
    detector: Detector | None = Detector(deal.differencing)
    known = [audit for audit in report.request.audits if audit.request_id in trial.batches]
    for audit in report.request.audits:
        place = f"{trial.deal_id}: compliance reports of {audit.request_id}"
        batch = trial.batches.get(audit.request_id)
        if batch is None:
            check.wrong(where, f"{place}, which nobody asked")
            continue
        check.same(where, f"{place}: metric", name_of(audit.metric), name_of(batch.metric))
        if batch.answer is not None:
            check.same(where, f"{place}: released", from_message(audit.released), from_message(batch.answer.gaps))
            check.same(where, f"{place}: epsilon", audit.epsilon, batch.answer.epsilon_charged)
        else:
            check.not_checked("answers and costs of batches whose answer was not given, or is not stored")
        if batch.predictions is None:
            check.not_checked(
                f"exact gaps of batches whose predictions are not there: {_BY_DIGEST}, or the call was cut"
            )
            detector = None
            continue
        exact = gaps(name_of(batch.metric), records.group_sums(name_of(batch.metric), batch.predictions))
        check.same(where, f"{place}: exact", from_message(audit.exact), exact)
        if detector is not None:
            detector.watch(batch.request_id, batch.predictions)
            check.same(where, f"{place}: flagged", audit.flagged, detector.flagged.get(batch.request_id, 0))
    said = [audit.request_id for audit in report.request.audits]
    for request_id, times in Counter(said).items():
        if times > 1:
            check.wrong(where, f"{trial.deal_id}: compliance reports {request_id} {times} times")
    for request_id, batch in trial.batches.items():
        if batch.is_answered and request_id not in said:
            check.wrong(where, f"{trial.deal_id}: compliance does not report {request_id}, which it answered")
    _order(check, trial, where, [trial.batches[audit.request_id] for audit in known])
    if len(known) == len(said):
        spent = _spent(check, trial, where, deal, [(trial.batches[one.request_id], one.epsilon) for one in known])
        check.same(where, f"{trial.deal_id}: compliance reports: epsilon_spent", report.request.epsilon_spent, spent)


def _order(check: _Check, trial: TrialMessages, where: str, batches: Sequence[Batch]) -> None:
    """See that none is reported before one that had been answered when it was asked: it cannot be charged before."""
    latest = -1
    for batch in batches:
        if batch.answered < latest:
            check.wrong(where, f"{trial.deal_id}: compliance reports {batch.request_id} after one that was asked later")
        latest = max(latest, batch.asked)


def _spent(check: _Check, trial: TrialMessages, where: str, deal: Any, charges: Sequence[tuple[Batch, float]]) -> float:
    """Add up what batches cost, and see that none but one answered from an earlier one is free."""
    mechanism = bounded(MECHANISMS[deal.mechanism], deal.bounding)
    losses: Counter[Any] = Counter()
    for number, (batch, charged) in enumerate(charges):
        loss = mechanism.cost(batch.epsilon, deal.batch_delta)
        if charged == 0 and number and isinstance(mechanism, Reusable):
            loss = FREE
        what = f"{trial.deal_id}: compliance reports of {batch.request_id}: epsilon"
        check.same(where, what, charged, loss.epsilon)
        if loss != FREE:
            losses[loss] += 1
    return Budget(deal.epsilon, deal.delta).spent(losses)


# What the developer reports.


class _Base:
    """The base model: it is known from what was dealt.

    Parameters
    ----------
    session : Session
        Has the tables that base models are trained on.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._trained: dict[str, Model] = {}

    def scores(self, dealt: Cards, rows: NDArray[np.float64]) -> tuple[NDArray[np.float64], float] | None:
        """Give its scores on the test set, shape (people,), and how far they may be from those that the developer had.

        Parameters
        ----------
        dealt : Cards
        rows : ndarray, shape (models, people)
            What was predicted, the first query first.

        Returns
        -------
        tuple or None
            None where its training table is not stored.
        """
        cards, digest = dealt.arrays or {}, dealt.deal.training_digest
        if "features" not in cards:
            return rows[0], 0.0  # the first query is about the base model itself, see `developer.hidden`
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


def _developer_of_reveal(base: _Base, check: _Check, trial: TrialMessages) -> None:
    """Compare how many queries there were, how right the models are, and how far they are from the base model."""
    dealt, submitted = trial.cards.get("DeveloperDeal"), trial.submissions.get("SubmitReveal")
    if dealt is None or submitted is None:
        return
    if not trial.is_heard:
        check.not_checked(_UNHEARD)
        return
    where, request, place = submitted.place, submitted.request, f"{trial.deal_id}: developer reports"
    check.reports += 1
    batches = sorted((one for one in trial.batches.values() if one.is_answered), key=lambda one: one.asked)
    asked = sum(batch.models for batch in batches)
    check.same(where, f"{place}: queries + size_queries", request.queries + request.size_queries, asked)
    predictions = [batch.predictions for batch in batches if batch.predictions is not None]
    if dealt.arrays is None or not submitted.is_stored or len(predictions) < len(batches):
        check.not_checked(f"what the developer reported of its models: {_BY_DIGEST}")
        return
    if not predictions:
        return
    rows = np.concatenate(predictions)
    looks = 0 if dealt.deal.HasField("features") else 1
    surely, maybe = _metric_rows(name_of(dealt.deal.metric), predictions, looks, request.size_queries)
    if request.HasField("accuracy_models"):
        shares = accuracy(rows, dealt.arrays["labels"])
        reported = _floats(request.accuracy_models)
        if surely.sum() == maybe.sum():
            check.same(where, f"{place}: accuracy_models", reported, shares[surely])
        elif not _is_within(reported, shares[maybe]):
            check.wrong(where, f"{place}: accuracy_models are not those of the models that were asked about")
    known = base.scores(dealt, rows)
    if known is None:
        check.not_checked("accuracy_base, max_prediction_change: the base model's training table is not stored")
        return
    scores, slack = known
    if request.HasField("accuracy_base"):
        ends = [float(accuracy(scores, dealt.arrays["labels"]))]
        if slack:
            # Whether a score of just about 1/2 is a yes, another processor may decide otherwise.
            unsure = float(np.mean(np.abs(scores - 0.5) <= slack))
            ends = [ends[0] - unsure, ends[0] + unsure]
        _between(check, where, f"{place}: accuracy_base", request.accuracy_base, ends)
    changes = np.abs(rows - scores).max(axis=1)
    ends = [float(changes[surely].max(initial=0.0)) - slack, float(changes[maybe].max(initial=0.0)) + slack]
    _between(check, where, f"{place}: max_prediction_change", request.max_prediction_change, ends)


def _between(check: _Check, where: str, what: str, reported: float, ends: Sequence[float]) -> None:
    """Compare a value with one that is known up to a little."""
    least, most = min(ends), max(ends)
    if not least <= reported <= most:
        again = repr(least) if least == most else f"{least!r} to {most!r}"
        check.wrong(where, f"{what} is {reported!r}, recomputed {again}")


def _metric_rows(
    metric: str, batches: Sequence[NDArray[np.float64]], looks: int, size_queries: int
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Tell size queries, and what was asked to see the rows, from the others: which surely are, and which may be.

    Size queries come first. Where a metric has two strata each has its own, asked alone before those of its stratum.
    """
    models = [len(batch) for batch in batches]
    numbers = np.arange(sum(models))
    if len(find_metric(metric).strata) == 1 or not size_queries:
        surely = numbers >= looks + size_queries
        return surely, surely
    maybe = numbers >= looks
    return maybe & np.repeat(np.array(models) > 1, models), maybe


def _is_within(some: NDArray[np.float64], values: NDArray[np.float64]) -> bool:
    """Whether leaving some of the values out can give others, in their order."""
    left = iter(values.tolist())
    return all(value in left for value in some.tolist())


def _developer_of_inference(check: _Check, trial: TrialMessages) -> None:
    """Compare how many queries there were, and scores with those that were served of the same rows."""
    dealt, submitted = trial.cards.get("TrainingDeal"), trial.submissions.get("SubmitModels")
    if dealt is None or submitted is None:
        return
    if not trial.is_heard:
        check.not_checked(_UNHEARD)
        return
    where, request, place = submitted.place, submitted.request, f"{trial.deal_id}: developer reports"
    check.reports += 1
    asked = sum(batch.models for batch in trial.batches.values() if batch.is_answered)
    check.same(where, f"{place}: queries", request.queries, asked)
    if dealt.deal.strengths:
        check.not_checked("strength: which lambda models were trained with is in no message")
    if dealt.arrays is None or not submitted.is_stored:
        check.not_checked(f"the models' scores that the developer reported: {_BY_DIGEST}")
        return
    if dealt.deal.training.defence == "none":
        for name in ("scores", "member_scores"):
            reported, base = (from_message(getattr(request, key)) for key in (name, f"base_{name}"))
            check.same(where, f"{place}: {name}, where there is no defence", reported, base)
    else:
        check.not_checked("base_scores, base_member_scores: undefended models answer nobody")
    _served_scores(check, trial, dealt, submitted)


def _served_scores(check: _Check, trial: TrialMessages, dealt: Cards, submitted: Submission) -> None:
    """Compare reported scores with those that the adversary got, where it asked about the same row."""
    assert dealt.arrays is not None, "looked at before"
    tables = {"scores": dealt.arrays["test_features"], "member_scores": dealt.arrays["features"]}
    for name, features in tables.items():
        reported = _floats(getattr(submitted.request, name))
        alike: dict[bytes, list[int]] = {}
        for number, row in enumerate(features[: reported.shape[1]].astype(np.float64)):
            alike.setdefault(row.tobytes(), []).append(number)
        seen: set[int] = set()
        unlike: list[str] = []
        for served in trial.served:
            if served.features is None or served.scores is None or served.model >= len(reported):
                continue
            answers = {row.tobytes(): score for row, score in zip(served.features, served.scores.tolist(), strict=True)}
            for row in alike.keys() & answers.keys():
                score = answers[row]
                seen.update(alike[row])
                for number in alike[row]:
                    own = float(reported[served.model, number])
                    if dealt.deal.labels_only:
                        differs = abs(own - 0.5) > _SERVED and (own >= 0.5) != (score == 1)
                    else:
                        differs = not abs(own - score) <= _SERVED
                    if differs:
                        unlike.append(f"{name}[{served.model}, {number}] is {own!r}, served {score!r}")
        if unlike:
            more = f", and {len(unlike) - 1} more" * (len(unlike) > 1)
            check.wrong(submitted.place, f"{trial.deal_id}: developer reports: {min(unlike)}{more}")
        if len(seen) < reported.shape[1]:
            check.not_checked(f"{name} of rows that the adversary did not ask about")


# What the adversary reports.


def _adversary(check: _Check, trial: TrialMessages) -> None:
    """Compare its loss test with the answers it got. Its guesses are its own."""
    dealt, submitted = trial.cards.get("AdversaryDeal"), trial.submissions.get("SubmitLossTest")
    if dealt is None or submitted is None:
        return
    cards = dealt.arrays
    known = [
        served.scores
        for served in trial.served
        if cards is not None
        and served.features is not None
        and served.scores is not None
        and np.array_equal(served.features, cards["features"])
    ]
    if cards is None or not known:
        check.not_checked(f"the adversary's loss test: {_BY_DIGEST}, or it asked about other rows")
        return
    check.reports += 1
    features, labels = cards["features"].astype(np.float64), cards["labels"].astype(np.uint8)
    again = loss_test(lambda _: known[-1], features, labels, dealt.deal.disadvantaged_rows)
    for name in ("accuracy_advantaged", "accuracy_disadvantaged"):
        what = f"{trial.deal_id}: adversary reports: {name}"
        check.same(submitted.place, what, getattr(submitted.request, name), getattr(again, name))


# What trials.jsonl says.


def _lines(check: _Check, folder: Path) -> _Lines | None:
    """Read the lines that there are; None where the scenario does not say what of."""
    try:
        plan = read_plan(str(folder / "scenario.toml"))
    except ScenarioError as error:
        check.not_checked(f"trials.jsonl: {error}")
        return None
    path = folder / "trials.jsonl"
    return _Lines(check, plan, read_trials(path) if path.exists() else [], complete=_is_complete(folder))


class _Lines:
    """Writes each trial's lines again, and compares them with those that there are.

    Parameters
    ----------
    check : _Check
    plan : Plan
    lines : iterable of mapping
    complete : bool
        Whether the result says that every trial was played.
    """

    def __init__(self, check: _Check, plan: Plan, lines: Iterable[dict[str, Any]], *, complete: bool) -> None:
        self._check = check
        self._complete = complete
        self._of = ("trial", "seed", *plan.scenario.axes)
        self._left: dict[str, list[dict[str, Any]]] = {}
        for line in lines:
            self._left.setdefault(self._key(line), []).append(line)
        self._turns = {f"deal-{position}": (cell, number) for cell, number, position in schedule(plan)}

    def _key(self, line: Mapping[str, Any]) -> str:
        return json.dumps([line.get(key) for key in self._of])

    def _take(self, deal_id: str) -> list[dict[str, Any]]:
        cell, number = self._turns.pop(deal_id)
        seed = cell.scenario.scenario.seed + number
        return self._left.pop(self._key({"trial": number, "seed": seed, **cell.swept}), [])

    def close(self, *, whole: bool) -> None:
        """Say which lines are of no trial, and which trials have no line.

        Parameters
        ----------
        whole : bool
            Whether what the referee dealt was recorded to its end.
        """
        for deal_id, (_, number) in [*self._turns.items()]:
            kept = self._take(deal_id)
            if kept and whole:
                self._check.wrong("trials.jsonl", f"trial {number} ({deal_id}) was dealt to nobody")
            elif kept:
                self._check.not_checked("lines of trials.jsonl whose trial is in no transcript")
            elif self._complete:
                self._missing(number, deal_id)
        for lines in self._left.values():
            text = f"trial {lines[0].get('trial')}: there is no such trial in the scenario"
            self._check.wrong("trials.jsonl", text)

    def _missing(self, number: int, deal_id: str) -> None:
        text = f"trial {number} ({deal_id}) is not there, and the run was played to its end"
        self._check.wrong("trials.jsonl", text)

    def compare(self, trial: TrialMessages) -> None:
        """Compare the lines of a trial."""
        check, deal_id = self._check, trial.deal_id
        if deal_id not in self._turns:
            check.not_checked(f"{deal_id}: there is no such trial in the scenario")
            return
        cell, number = self._turns[deal_id]
        kept, name = self._take(deal_id), f"trial {number} ({deal_id})"
        if not kept:
            if self._complete:
                self._missing(number, deal_id)
            else:
                check.not_checked("trials that have no line in trials.jsonl")
            return
        game_played = cell.scenario.scenario.game
        try:
            again = (
                _reveal_lines(cell, number, trial) if game_played == "reveal" else _inference_lines(cell, number, trial)
            )
        except _Unknown as why:
            check.not_checked(f"lines of trials.jsonl: {why}")
            return
        except (ValueError, LookupError, TypeError, ArithmeticError) as error:
            check.not_checked(f"{name} of trials.jsonl: its messages do not fit together: {error!r}")
            return
        check.reports += len(again)
        if len(kept) != len(again):
            check.wrong("trials.jsonl", f"{name} has {len(kept)} lines, recomputed {len(again)}")
        for line, other in zip(kept, json.loads(json.dumps(again)), strict=False):
            for key in sorted((line.keys() | other.keys()) - {"seconds"}):
                if key not in line:
                    check.wrong("trials.jsonl", f"{name}: {key} is not there, recomputed {other[key]!r}")
                elif key not in other:
                    check.wrong("trials.jsonl", f"{name}: {key} is {line[key]!r}, and follows from nothing")
                elif not _alike(line[key], other[key], 0.0 if game_played == "reveal" else _LOGARITHMS):
                    check.wrong("trials.jsonl", f"{name}: {key} is {line[key]!r}, recomputed {other[key]!r}")


class _Unknown(ValueError):
    """Something that is needed to write a line again, and that is in no message."""


def _is_complete(folder: Path) -> bool:
    """Whether the result says that every trial was played."""
    try:
        return bool(json.loads((folder / "result.json").read_bytes())["complete"])
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _alike(one: Any, other: Any, tolerance: float) -> bool:
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(_alike(*pair, tolerance) for pair in zip(one, other, strict=True))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_alike(one[key], other[key], tolerance) for key in one)
    if isinstance(one, float) and isinstance(other, float) and tolerance:
        return math.isclose(one, other, rel_tol=tolerance, abs_tol=tolerance)
    return bool(one == other)


def _needed(trial: TrialMessages, method: str) -> Any:
    submitted = trial.submissions.get(method)
    if submitted is None:
        raise _Unknown("their trials were not played to their end in what was recorded")
    if not submitted.is_stored:
        raise _Unknown(_BY_DIGEST)
    return submitted.request


def _arrays(trial: TrialMessages, deal: str) -> dict[str, NDArray[Any]]:
    dealt = trial.cards.get(deal)
    if dealt is None:
        raise _Unknown("their trials' deals are in no transcript")
    if dealt.arrays is None:
        raise _Unknown(_BY_DIGEST)
    return dealt.arrays


def _reveal_lines(cell: Cell, number: int, trial: TrialMessages) -> list[dict[str, Any]]:
    """Write down a trial of the reveal game as the referee would have."""
    cards, request = _arrays(trial, "ComplianceDeal"), _needed(trial, "SubmitReveal")
    report = _report(_needed(trial, "SubmitAuditReport"))
    attacked = bool(cell.scenario.adversary.attack)
    test = _needed(trial, "SubmitLossTest") if attacked else None
    guess = RevealGuess(
        baseline=_bits(request.baseline),
        guess=_bits(request.guess),
        targeted=_bits(request.targeted).astype(np.bool_),
        polarity_known=request.polarity_known,
        reconstruction=_floats(request.reconstruction) if request.HasField("reconstruction") else None,
        queries=request.queries,
        size_queries=request.size_queries,
        max_prediction_change=request.max_prediction_change,
        accuracy_base=request.accuracy_base if request.HasField("accuracy_base") else None,
        accuracy_models=_floats(request.accuracy_models) if request.HasField("accuracy_models") else None,
        guess_from_answers=_bits(request.guess_from_answers) if request.HasField("guess_from_answers") else None,
    )
    # What the developer and the adversary were dealt is no part of a line.
    deal = Deal(
        deal_id=trial.deal_id,
        scenario=cell.scenario,
        compliance=ComplianceCards(cards["labels"].astype(np.uint8), cards["protected"].astype(np.uint8), seed=b""),
        developer=DeveloperCards(None, None, scored=False, training=None),
        adversary=None,
    )
    tested = LossTest(test.accuracy_advantaged, test.accuracy_disadvantaged) if test is not None else None
    outcome = Outcome(guess, report.audits, report.epsilon_spent, tested)
    return [reveal.record(cell, number, deal, outcome, 0.0)]


def _inference_lines(cell: Cell, number: int, trial: TrialMessages) -> list[dict[str, Any]]:
    """Write down a trial of the inference game as the referee would have.

    Labels and groups of the test rows, which it kept to itself, are drawn again, from the scenario and its table.
    """
    cards, request = _arrays(trial, "TrainingDeal"), _needed(trial, "SubmitModels")
    guesses = _needed(trial, "SubmitGuesses")
    report = _report(_needed(trial, "SubmitAuditReport")) if cell.scenario.developer.lambdas else None
    try:
        dealt = inference_deal.deal(cell, number, trial.deal_id)
    except (DealError, DataError) as error:
        raise _Unknown(f"the test rows are in no message, and cannot be drawn again: {error}") from None
    drawn = {"bits": dealt.bits, "labels": dealt.developer.labels, "groups": dealt.developer.groups}
    if not all(np.array_equal(cards[name], values) for name, values in drawn.items()):
        raise _Unknown("the test rows are in no message, and the table is not what it was")
    models = inference.Models(
        scores=_floats(request.scores),
        base_scores=_floats(request.base_scores),
        member_scores=_floats(request.member_scores),
        base_member_scores=_floats(request.base_member_scores),
        strength=request.strength,
        queries=request.queries,
    )
    outcome = inference.InferenceOutcome(models, _bits(guesses.guesses), report)
    return inference.record(cell, number, dealt, outcome, 0.0)


def _report(request: game.SubmitAuditReportRequest) -> AuditReport:
    audits = (
        AuditRecord(name_of(one.metric), _floats(one.exact), _floats(one.released), one.flagged)
        for one in request.audits
    )
    return AuditReport(tuple(audits), request.epsilon_spent)


def _bits(message: Any) -> NDArray[np.uint8]:
    return from_message(message).astype(np.uint8)


def _floats(message: Any) -> NDArray[np.float64]:
    return from_message(message).astype(np.float64)
