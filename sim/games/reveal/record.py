"""The line of a reveal trial, and the summary of a cell's lines."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from developer.reveal.strategies.sums import answers_needed
from fairwall.laws.mechanisms import MECHANISM_LAWS
from fairwall.laws.metric import METRICS, stratum
from fairwall.laws.risk import Sure
from sim.games.game import Line
from sim.games.reveal import score
from sim.games.reveal.answers import metric_answers
from sim.games.reveal.deal import RevealDeal
from sim.games.reveal.outcome import RevealGuess, RevealOutcome
from sim.games.reveal.scenario import RevealScenario
from sim.games.reveal.score import RevealScore
from sim.games.summary import mean, sd
from sim.report.estimates import FEWEST, share_interval
from sim.scenarios.scenario import plain
from sim.scenarios.sweep import Cell

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
