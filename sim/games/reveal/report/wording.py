"""The report's sentences: what was played, what happened, and what it does not show. Each is made from the trials."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from compliance.mechanisms import MECHANISMS
from fairwall.laws.metric import METRICS
from sim.games.reveal.report.answers import as_needed
from sim.games.reveal.report.loss_test import LossTestRow
from sim.games.reveal.report.printed import PrintedError, contest, lower_everywhere
from sim.games.reveal.scenario import RevealScenario
from sim.report.cells import Estimate, ReportCell, Trial
from sim.report.notation import number, plural, ratio, setting, span, symbol
from sim.scenarios.scenario import Scenario
from sim.scenarios.sweep import Sweep

_NOISE = {True: "with noise", False: "without noise"}


def played(sweep: Sweep, trials: Sequence[Trial]) -> str:
    """Say what was played, and who held what."""
    scenarios = [cell.scenario for cell in sweep.cells]
    if not trials:
        planned = sum(scenario.scenario.trials for scenario in scenarios)
        return f"Three separate processes were to play {plural(planned, 'trial')}; none finished."
    data = scenarios[0].data
    metrics = " or ".join(dict.fromkeys(METRICS[scenario.compliance.metric].title for scenario in scenarios))
    people, n0, n1 = (span({trial[key] for trial in trials}) for key in ("n", "n0", "n1"))
    groups = f"{n0} {data.disadvantaged or 'disadvantaged'}, {n1} {data.advantaged or 'advantaged'}"
    held = f"the protected attribute, {data.protected}," if data.protected else "the protected attribute"
    hidden = f"their {data.protected}" if data.protected else "the protected attribute"
    dealt = (
        "neither these people's features nor their labels"
        if all(scenario.data.hidden for scenario in scenarios)
        else "the same people's features and labels"
    )
    outsider = (
        "An adversary outside saw the developer's released model alone, and public data."
        if any(scenario.adversary.attack for scenario in scenarios)
        else "The third process, an adversary outside, had no part in this scenario."
    )
    return (
        f"Three separate processes played {plural(len(trials), 'trial')}. "
        f"A compliance team held {held} of {people} people ({groups}). "
        f"A model developer was dealt {dealt}, and never {hidden}; "
        f"it asked for the {metrics} of models of its own making, and guessed from the answers who is in which group. "
        f"{outsider}"
    )


def happened(
    cells: Sequence[ReportCell], errors: Sequence[PrintedError], tests: Sequence[LossTestRow], attribute: str
) -> tuple[str, ...]:
    """Say what happened, a finding a paragraph.

    Parameters
    ----------
    cells : sequence of ReportCell
    errors : sequence of PrintedError
    tests : sequence of LossTestRow
    attribute : str
        What the protected attribute is called.
    """
    findings = []
    for kind in (False, True):
        alike = [cell for cell in cells if cell.noisy is kind]
        if alike:
            # Of several that leaked alike, the one with the fewest answers.
            top = min(alike, key=_rank)
            best = "best rate" if top.targeted == 1 else "highest leakage"
            notes = [*_told(top), *([f"the {best} of {len(alike)} cells {_NOISE[kind]}"] if len(alike) > 1 else [])]
            most = f" ({', '.join(notes)})" if notes else ""
            verdict = f" {_verdict(top)}" if kind and top.targeted > 1 else ""
            findings.append(f"With {_answers(top)}{most}, {_outcome(top, attribute)}.{verdict}")
    if tests:
        row = tests[0]
        findings.append(
            f"The outsider found the released model right for {row.advantaged}% of the advantaged "
            f"and for {row.disadvantaged}% of the disadvantaged: a gap of {row.gap} points."
        )
    if errors:
        findings.append(
            "The average errors that the paper prints are far smaller than the noise that its own printed formulas "
            f"call for: {_by_mechanism(errors)} (see below)."
        )
    return tuple(findings)


def _rank(cell: ReportCell) -> tuple[float, ...]:
    if cell.targeted == 1:
        return (-cell.summary["targeted_rate"], cell.epsilon)
    return (-cell.leakage.mean, cell.summary["answers_most"], cell.epsilon)


def _told(cell: ReportCell) -> list[str]:
    said = {"developer.queries", "compliance.epsilon", "compliance.mechanism"}
    told = {key: value for key, value in cell.swept.items() if key not in said and value != "own"}
    return [f"{symbol(key)} = {setting(value)}" for key, value in told.items()]


def _answers(cell: ReportCell) -> str:
    # Where the strategy decides how many to ask, the size query is one of them.
    most = cell.summary["answers_most"] if as_needed(cell) else cell.queries
    at_most = "at most " if as_needed(cell) else ""
    if not cell.noisy:
        precision = cell.scenario.compliance.precision
        kind = "verdict" if cell.mechanism == "pass-fail" else "exact answer" if precision == "float64" else "answer"
        return f"{at_most}{plural(most, kind)}"
    noise = f"{MECHANISMS[cell.mechanism].title} noise at ε = {number(cell.epsilon, 6)}"
    return f"{at_most}{plural(most, 'answer')} under {noise}"


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


def _outcome(cell: ReportCell, attribute: str) -> str:
    trials = plural(len(cell.trials), "trial")
    if cell.targeted == 1:
        hits = sum(trial["targeted_recovered"] for trial in cell.trials)
        return f"the developer, which aimed at one person, was right about that person in {hits:,} of {trials}"
    exact = cell.summary["exact"]
    partition = METRICS[cell.summary["metric"]].absolute
    knew = f"knew everybody's {attribute}{', up to which group is which,' if partition else ''}"
    balanced = f"{cell.leakage}% of people (balanced over the groups; 50% is a coin)"
    before = f"before any question it was right for {cell.baseline}%"
    if exact == len(cell.trials):
        return f"the developer {knew} in {exact} of {trials}; {before} (balanced over the groups; 50% is a coin)"
    if exact:
        return f"the developer {knew} in {exact} of {trials}; over all trials it was right for {balanced}, and {before}"
    return f"the developer never {knew}; it was right for {balanced}, and {before}"


def _verdict(cell: ReportCell) -> str:
    """Compare leakage with the guess before asking, trial by trial, and claim no more than the interval does."""
    gain = cell.gain
    if gain.half is None:
        return "One trial gives no interval."
    if gain.sign > 0:
        return f"That is {gain} points above what it knew before asking: the noise did not hide everything."
    if gain.sign < 0:
        return (
            f"That is {Estimate(-gain.mean, gain.half)} points below what it could guess before asking: "
            "read this way, the answers were of no use. Somebody may find a better way to read them."
        )
    return (
        f"The difference to its guess before asking, {gain} points, cannot be told from none over so few trials; "
        "that is no proof that nothing leaked."
    )


def _by_mechanism(errors: Sequence[PrintedError]) -> str:
    parts = []
    for mechanism in dict.fromkeys(error.mechanism for error in errors):
        low, high = _ratios(error for error in errors if error.mechanism == mechanism)
        parts.append(f"{_times(low, high)} for {MECHANISMS[mechanism].title}")
    return ", ".join(parts)


def _ratios(errors: Iterable[PrintedError]) -> tuple[float, float]:
    ratios = [error.ratio for error in errors]
    return min(ratios), max(ratios)


def _times(low: float, high: float) -> str:
    return f"{ratio(low)} times" if low == high else f"{ratio(low)} to {ratio(high)} times"


def printed_conclusions(errors: Sequence[PrintedError]) -> tuple[str, ...]:
    """Say how far the printed figures are from the printed formulas."""
    conclusions = []
    for mechanism, where, typical in (("conceal", "Algorithm 3", "median"), ("laplace", "Theorem 5", "mean")):
        ours = [error for error in errors if error.mechanism == mechanism]
        if not ours:
            continue
        low, high = _ratios(ours)
        factor = ""
        if high > 3 * low:
            factor = f" No one missing factor explains them: the ratio itself varies {high / low:.0f}-fold."
        conclusions.append(
            f"{MECHANISMS[mechanism].title}: the printed average errors are {_times(low, high)} smaller than the "
            f"{typical} size of the noise in the printed formula ({where}), over {plural(len(ours), 'cell')}.{factor}"
        )
    bout = contest(errors)
    if bout.cells:
        counted = f"{bout.by_median} of {bout.cells} cells"
        if bout.by_mean != bout.by_median:
            counted += f" by medians ({bout.by_mean} against Laplace's mean)"
        against = ". The printed figures have it smaller in every one" if lower_everywhere(errors) else ""
        conclusions.append(
            f"As the formulas are printed, Attribute-Conceal's noise is larger than Laplace's in {counted}{against}."
        )
    return tuple(conclusions)


def majority_note(cells: Sequence[ReportCell]) -> str:
    """Say what naming the larger group for everybody gets right."""
    rights = span({cell.majority for cell in cells})
    return f"Naming the larger group for everybody gets {rights} people right, with a leakage of 50%."


def assumptions(sweep: Sweep, trials: Sequence[Trial]) -> Iterator[tuple[str, str]]:
    """Name what was assumed, and what was and was not protected: a term, and what to know about it."""
    scenarios = [cell.scenario for cell in sweep.cells]
    yield (
        "The developer's side knowledge",
        f"{_dealt(scenarios)}, and the public policy: the metric, the mechanism, ε, {_known(scenarios)}. Not the "
        "protected attribute, nor any number computed from it except the answers"
        + (" and what is named here." if any("n0" in scenario.developer.knows for scenario in scenarios) else "."),
    )
    yield (
        "Leakage",
        "Balanced accuracy (Definition 5.1 of Hamman, Chen and Dutta, FAccT 2023): the mean of the shares of either "
        "group that are guessed right, in percent. Naming the larger group for everybody scores 50, however many "
        "people that gets right.",
    )
    yield (
        "No query",
        f"What the developer reaches before asking: {_unasked(scenarios)}. Only leakage above it shows that answers "
        "gave something away. It is one simple guess; better ones may exist.",
    )
    if any(scenario.developer.public_sample for scenario in scenarios):
        yield (
            "Features, answers, together",
            "Features alone: the public predictor, without a query. Answers alone: the same answers, decoded as if "
            "people had no features. Together: the decoder starts from what the predictor says of each person. A "
            "strategy that has no use for features shows the same figure for answers alone and for both.",
        )
    yield (
        "Intervals",
        "95% t intervals of the mean over trials; they can reach beyond 0 and 100. “± 0.0” says that all trials came "
        "to the same, not that the next one must. Where the highest of many cells is picked out, its interval is not "
        "corrected for the picking.",
    )
    attacks = dict.fromkeys(
        f"strategy “{scenario.developer.strategy}”"
        + (f" with decoder “{scenario.decoder}”" if scenario.decoder else "")
        for scenario in scenarios
    )
    yield (
        "These attacks, no others",
        f"Measured against {', '.join(attacks)}. "
        + (
            "“best” is the strongest that fairwall has for what is public, not the strongest there can be. "
            if any(scenario.developer.strategy == "best" for scenario in scenarios)
            else ""
        )
        + "Low leakage under one attack is no guarantee against another; a guarantee is what ε gives, and a large ε "
        "gives little.",
    )
    if any(isinstance(scenario.compliance.precision, int) for scenario in scenarios):
        yield (
            "Digits",
            "So many decimals of an answer are told. Rounding is no noise and gives no guarantee: it makes the "
            "developer ask more often, no more.",
        )
    if any(scenario.compliance.differencing for scenario in scenarios):
        yield (
            "Flagged models",
            "A detector of compliance's counts the models whose predictions differ from an earlier one's in few "
            "people. It looks on and refuses nothing. Models that all differ everywhere are never flagged, whatever "
            "they reveal.",
        )
    noisy = any(math.isfinite(scenario.epsilon) for scenario in scenarios)
    if noisy:
        shared = any(trial["size_queries"] for trial in trials)
        yield (
            "ε",
            "Privacy loss of all answers of a trial together, between data sets that differ in one person's protected "
            "attribute. What is charged is what was promised. Noise is on the corrected sensitivity, not on the "
            "printed one" + ("; one size query shares the budget, so it is for m + 1 answers." if shared else "."),
        )
    if noisy and any(scenario.compliance.noise == "seeded" for scenario in scenarios):
        yield (
            "Noise from a seed",
            "The games replay: their noise comes from a small seed, and anybody who tries all seeds can take it off. "
            "A service for real people must draw it from the operating system.",
        )
    if any(trial["targeted"] < trial["n"] for trial in trials):
        yield (
            "People not aimed at",
            "The strategy or the metric speaks about some of the people alone; the others keep the guess made without "
            "any query, and count in the leakage.",
        )
    if any(METRICS[scenario.compliance.metric].absolute for scenario in scenarios):
        yield (
            "Up to polarity",
            "An absolute gap is the same when the groups change places, so leakage is that of the better naming of the "
            "two parts. “Smaller group named” is what is left when the developer takes the smaller part for the "
            "disadvantaged group; “one person known”, when it learns one person's group from elsewhere.",
        )
