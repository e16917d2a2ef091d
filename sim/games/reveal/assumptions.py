"""Assumptions of a reveal run, and the protection that it did and did not have."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from compliance.answers.exposure import exposure, limited
from compliance.mechanisms import MECHANISMS
from fairwall.laws.metrics.group_size_range import DEFAULT_SHARES, Shares
from fairwall.laws.metrics.metric import METRICS
from fairwall.laws.privacy.exposure import Limit, one_person
from sim.games.reveal.scenario import RevealScenario
from sim.report.cells import Trial
from sim.report.estimates import INTERVALS
from sim.report.notation import number
from sim.report.page import Term
from sim.scenarios.sweep import Sweep

_TERMS: Mapping[str, str] = {
    "The developer's side knowledge": "",
    "Leakage": (
        "Balanced accuracy (Definition 5.1 of Hamman, Chen and Dutta, FAccT 2023): the mean of the shares of either "
        "group that are guessed right, in percent. Naming the larger group for everybody scores 50, however many "
        "people that gets right."
    ),
    "No query": "",
    "Features, answers, together": (
        "Features alone: the public predictor, without a query. Answers alone: the same answers, decoded as if "
        "people had no features. Together: the decoder starts from what the predictor says of each person. A "
        "strategy that has no use for features shows the same figure for answers alone and for both."
    ),
    "Intervals": (
        f"{INTERVALS} Where the highest of many cells is picked out, its interval is not corrected for the picking."
    ),
    "These attacks, no others": "",
    "Digits": (
        "So many decimals of an answer are told. Rounding is no noise and gives no guarantee: it makes the developer "
        "ask more often, no more."
    ),
    "Flagged models": (
        "A detector of compliance's counts the models whose predictions differ from an earlier one's in few people. "
        "It looks on and refuses nothing. Models that all differ everywhere are never flagged, whatever they reveal."
    ),
    "ε": "",
    "In plain words": "",
    "Noise from a seed": (
        "The games replay: their noise comes from a small seed, and anybody who tries all seeds can take it off. A "
        "service for real people must draw it from the operating system."
    ),
    "People not aimed at": (
        "The strategy or the metric speaks about some of the people alone; the others keep the guess made without "
        "any query, and count in the leakage."
    ),
    "Up to polarity": (
        "An absolute gap is the same when the groups change places, so leakage is that of the better naming of the "
        "two parts. “Smaller group named” is what is left when the developer takes the smaller part for the "
        "disadvantaged group; “one person known”, when it learns one person's group from elsewhere."
    ),
}
"""Terms in their order; empty texts depend on the run."""

_NO_QUERY = (
    "What the developer reaches before asking: {unasked}. Only leakage above it shows that answers gave something "
    "away. It is one simple guess; better ones may exist."
)
_EPSILON = (
    "Privacy loss of all answers of a trial together, between data sets that differ in one person's protected "
    "attribute. What is charged is what was promised. Noise is on the corrected sensitivity, not on the printed one"
)


def assumptions(sweep: Sweep, trials: Sequence[Trial]) -> Iterator[Term]:
    """Yield each assumption or limit of protection: a term and its explanation."""
    scenarios = [cell.scenario for cell in sweep.cells]
    noisy = any(math.isfinite(scenario.epsilon) for scenario in scenarios)
    by_seed = sweep.scenario.scenario.secret == "seed"  # noqa: S105 - the name of a mode
    holds = {
        "Features, answers, together": any(scenario.developer.public_sample for scenario in scenarios),
        "Digits": any(isinstance(scenario.compliance.precision, int) for scenario in scenarios),
        "Flagged models": any(scenario.compliance.differencing for scenario in scenarios),
        "ε": noisy,
        "In plain words": noisy,
        "Noise from a seed": noisy and by_seed and any(one.compliance.noise == "seeded" for one in scenarios),
        "People not aimed at": any(trial["targeted"] < trial["n"] for trial in trials),
        "Up to polarity": any(METRICS[scenario.compliance.metric].absolute for scenario in scenarios),
    }
    shared = "; one size query shares the budget, so it is for m + 1 answers."
    own = {
        "The developer's side knowledge": _side_knowledge(scenarios),
        "No query": _NO_QUERY.format(unasked=_unasked(scenarios)),
        "These attacks, no others": _attacks(scenarios),
        "ε": f"{_EPSILON}{shared if any(trial['size_queries'] for trial in trials) else '.'}",
        "In plain words": _in_plain_words(scenarios) if noisy else "",
    }
    for term, text in _TERMS.items():
        if holds.get(term, True):
            yield term, own.get(term, text)


def _side_knowledge(scenarios: Sequence[RevealScenario]) -> str:
    named = " and what is named here." if any("n0" in scenario.developer.knows for scenario in scenarios) else "."
    return (
        f"{_dealt(scenarios)}, and the public policy: the metric, the mechanism, ε, {_known(scenarios)}. Not the "
        f"protected attribute, nor any number computed from it except the answers{named}"
    )


def _attacks(scenarios: Sequence[RevealScenario]) -> str:
    played = {(scenario.developer.strategy, scenario.decoder): None for scenario in scenarios}
    told = (f"strategy “{strategy}”{f' with decoder “{decoder}”' if decoder else ''}" for strategy, decoder in played)
    best = "“best” is the strongest that fairwall has for what is public, not the strongest there can be. "
    return (
        f"Measured against {', '.join(told)}. {best if ('best', 'best') in played else ''}Low leakage under one attack "
        "is no guarantee against another; a guarantee is what ε gives, and a large ε gives little."
    )


def _in_plain_words(scenarios: Sequence[RevealScenario]) -> str:
    """Return epsilon's guarantee in words, and the largest leakage of a batch by `compliance.answers.exposure`."""
    finite = [scenario for scenario in scenarios if math.isfinite(scenario.epsilon)]
    epsilons = sorted({scenario.epsilon for scenario in finite})
    limits = [f"{100 * one_person(epsilon):.3g}% at ε = {number(epsilon, 6)}" for epsilon in epsilons]
    told = (
        "About one person aimed at, nobody is right more often than e^(2ε)/(1+e^(2ε)), both groups counted equally, "
        f"where guessing gives 50%: {', '.join(limits)}."
    )
    figures = {}
    for scenario in finite:
        n, m = scenario.data.test_size, scenario.developer.queries
        if n is None or n < 3 or not isinstance(m, int) or METRICS[scenario.compliance.metric].labelled:
            continue  # the size of the metric's stratum is not known here
        n0 = scenario.data.n0
        shares = DEFAULT_SHARES if n0 is None else Shares(n0 / n, n0 / n)
        asked = scenario.compliance
        mechanism = limited(MECHANISMS[asked.mechanism], Limit(asked.reveal_max))
        share = exposure(mechanism, asked.metric, n, m, scenario.epsilon, scenario.batch_delta, shares)
        if not math.isnan(share):
            figures[f"{asked.mechanism}, ε = {number(scenario.epsilon, 6)}, {m} models"] = share
    if figures:
        told += (
            " Whoever knew N0 and spent everything on one batch of so many models to find out who is who, by answers "
            "alone and with predictions of his choice, would be right, both groups counted equally, for about: "
            + "; ".join(f"{100 * share:.3g}% ({which})" for which, share in figures.items())
            + "."
        )
    return told


def _dealt(scenarios: Sequence[RevealScenario]) -> str:
    own = "its own model's predictions for them"
    if all(scenario.data.hidden for scenario in scenarios):
        return "Neither features nor labels of the test set; the rows that its own server is asked about"
    if any(scenario.data.hidden for scenario in scenarios):
        return f"Features and labels of every person in the test set, unless it is hidden, {own}"
    return f"Features and labels of every person in the test set, {own}"


def _known(scenarios: Sequence[RevealScenario]) -> str:
    knows = {name for scenario in scenarios for name in scenario.developer.knows}
    parts = ["how many questions the budget covers"]
    if "precision" in knows:
        parts.append("how precise answers are")
    if "n0" in knows:
        parts.append("how many people are disadvantaged")
    samples = sorted({scenario.developer.public_sample for scenario in scenarios} - {0})
    if samples:
        parts.append(f"{' or '.join(f'{many:,}' for many in samples)} public people with their groups")
    return ", ".join([*parts[:-1], f"and {parts[-1]}"]) if len(parts) > 1 else f"and {parts[0]}"


def _unasked(scenarios: Sequence[RevealScenario]) -> str:
    halves = "the half of the people with the lower scores of its base model is guessed disadvantaged"
    learnt = "each person is guessed by a predictor of the group that is learnt from the public people"
    if all(scenario.developer.public_sample for scenario in scenarios):
        return learnt
    if any(scenario.developer.public_sample for scenario in scenarios):
        return f"{halves}; with public people, {learnt}"
    return halves
