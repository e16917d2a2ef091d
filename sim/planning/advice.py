"""Advice for a domain and a table: a decision tree, walked with the table's figures, and recommendations from it.

Section VII-E of Watson, "From Statistical Disclosure Control to Fair AI" (arXiv 2601.17909), gives the priorities. Its
decision tree, Figure 3, is not in the text that we have: the tree here is reconstructed from the section, with our own
figures at its nodes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from fairwall.laws.choice.prediction import SHRUNK
from fairwall.laws.noise.randomized_response import turning_probability
from sim.planning.commands import Command, mechanism_run, plan, training_run
from sim.planning.practices import DATA, MECHANISMS, MODELS, PLAIN, PRACTICES, AdvisedPractice, Domain
from sim.planning.situation import Situation

SMALL_SHARE = 0.2
"""Share of a group below which it counts as small. Ours."""

_NOBODY = 1e-9
"""Probability of turning over an attribute below which nobody's is turned over."""

RECONSTRUCTED = "reconstructed: the paper's Figure 3 is not in the text that we have"


@dataclass(frozen=True)
class AdviceRequest:
    """The question for which advice is given; without a table the walk ends with the domain's nodes."""

    domain: Domain
    epsilon: float
    within: float
    situation: Situation | None

    @property
    def seen(self) -> Situation:
        """The situation of a case that has a table."""
        assert self.situation is not None, "a node of the table is answered with a table alone"
        return self.situation


@dataclass(frozen=True)
class NodeAnswer:
    """The answer to a node's question: the branch taken, in words, and the figures behind it."""

    branch: str
    text: str
    figures: Mapping[str, float | None]


@dataclass(frozen=True)
class Node:
    """A question of the tree, the function that answers it, the next node's name by branch, and if it needs a table."""

    name: str
    asks: str
    answer: Callable[[AdviceRequest], NodeAnswer]
    then: Mapping[str, str]
    of_table: bool = True


@dataclass(frozen=True)
class WalkedNode:
    """A node that was walked through; ``answer`` is None where a table is needed."""

    node: Node
    answer: NodeAnswer | None


@dataclass(frozen=True)
class PracticeAdvice:
    """One recommendation: a key of `sim.planning.practices`, the reason in the walk, and a command that tries it."""

    name: str
    practice: AdvisedPractice
    why: str
    command: Command


@dataclass(frozen=True)
class Advice:
    """The walk, the branch taken at each node, a verdict in a line, and recommendations, most urgent first."""

    case: AdviceRequest
    steps: tuple[WalkedNode, ...]
    branches: Mapping[str, str]
    verdict: str
    recommendations: tuple[PracticeAdvice, ...]


def advise(case: AdviceRequest) -> Advice:
    """Walk the tree and return the advice."""
    steps = tuple(_walk(case))
    taken = {step.node.name: step.answer.branch for step in steps if step.answer is not None}
    return Advice(case, steps, taken, _verdict(case, taken), tuple(_recommended(case, taken)))


def _walk(case: AdviceRequest) -> Iterator[WalkedNode]:
    name = ROOT
    while name:
        node = TREE[name]
        if node.of_table and case.situation is None:
            break
        answer = node.answer(case)
        yield WalkedNode(node, answer)
        name = node.then[answer.branch]
    if case.situation is None:
        yield from (WalkedNode(node, None) for node in TREE.values() if node.of_table)


def _first(case: AdviceRequest) -> NodeAnswer:
    priority = case.domain.priority
    whose = "the paper" if case.domain.named else "ours: like a domain that the paper names"
    return NodeAnswer(priority.name, f"{priority.puts_first} ({whose})", {})


def _range(case: AdviceRequest) -> NodeAnswer:
    priority = case.domain.priority
    place = priority.place(case.epsilon)
    text = f"epsilon {case.epsilon:,g} is {'in' if place == 'within' else place} the paper's range, {priority.range}"
    notes = {
        "below": ": more privacy than it asks for, welcome where the rows carry it",
        "above": ": less privacy than it advises; lower it if the rows carry that",
        "within": ""
        if case.epsilon <= priority.most
        else f", which has no upper end; we advise none above {priority.most:g}, where a promise says little",
    }
    return NodeAnswer(place, text + notes[place], {"epsilon": case.epsilon, "above": priority.above})


def _sampled(case: AdviceRequest) -> NodeAnswer:
    seen = case.seen
    few = seen.reach > case.within
    text = f"the labels' gap is the population's within {seen.reach:.3f} in 95 of 100 samples"
    if few:
        text += f"; within {case.within:g} takes {seen.people_for_reach:,} people"
    return NodeAnswer("few" if few else "enough", text, {"reach": seen.reach, "people_needed": seen.people_for_reach})


def _audited(case: AdviceRequest) -> NodeAnswer:
    seen = case.seen
    audit = seen.audit
    text = f"{_percent(audit.worst.probability)} of released gaps are within {case.within:g} of the table's own"
    if audit.reach is not None:
        text += f"; 95% are within {audit.reach:.2g}"
    figures = {"probability": audit.worst.probability, "within_that_holds": audit.reach}
    return NodeAnswer("yes" if audit.holds else "no", text, figures)


def _affordable(case: AdviceRequest) -> NodeAnswer:
    seen = case.seen
    least, most = seen.audit.epsilon, case.domain.priority.most
    raised = least is not None and least <= most
    where = "none up to 10,000 is enough" if least is None else f"epsilon {least:g} is enough"
    text = f"{where}; up to {most:g} is {'' if raised else 'all that is '}advised in this domain"
    return NodeAnswer("raise" if raised else "collect", text, {"epsilon_needed": least, "most": most})


def _dominates(case: AdviceRequest) -> NodeAnswer:
    seen = case.seen
    at = seen.smallest
    noise, sampling = seen.noise_errors[at], seen.sampling_errors[at]
    text = (
        f"{seen.table.groups[at]}, {seen.sizes[at]:,} people: noise {noise:.2g}, sampling error {sampling:.2g} "
        f"({noise / sampling:.2g} times)"
    )
    figures = {"noise_error": noise, "sampling_error": sampling, "ratio": noise / sampling}
    return NodeAnswer("noise" if noise > sampling else "sampling", text, figures)


def _share(case: AdviceRequest) -> NodeAnswer:
    seen = case.seen
    text = f"{seen.table.groups[seen.smallest]}: {seen.share:.1%} of the rows (small: below {SMALL_SHARE:.0%}, ours)"
    return NodeAnswer("small" if seen.share < SMALL_SHARE else "large", text, {"share": seen.share})


def _labels(case: AdviceRequest) -> NodeAnswer:
    seen = case.seen
    low, high = seen.base_rates
    gap = high - low
    differ = abs(gap) > case.within
    text = (
        f"{seen.table.outcome}: {100 * low:.1f}% of {seen.table.groups[0]}, {100 * high:.1f}% of {seen.table.groups[1]}"
    )
    text += ": a model that is always right has that gap" if differ else ": a small gap need not cost accuracy"
    return NodeAnswer("differ" if differ else "alike", text, {"gap": gap})


def _all(branches: str, name: str) -> dict[str, str]:
    return dict.fromkeys(branches.split(), name)


ROOT = "first"
TREE = {
    node.name: node
    for node in (
        Node("first", "What comes first?", _first, _all("fairness privacy balance", "range"), of_table=False),
        Node("range", "Is epsilon as advised there?", _range, _all("below within above", "sampled"), of_table=False),
        Node("sampled", "Are there rows enough, noise apart?", _sampled, _all("enough few", "audited")),
        Node("audited", "Can a gap be released at this epsilon?", _audited, {"yes": "dominates", "no": "affordable"}),
        Node("affordable", "Does a larger epsilon do?", _affordable, _all("raise collect", "dominates")),
        Node("dominates", "What errs more in the smaller group?", _dominates, _all("noise sampling", "share")),
        Node("share", "Is a group small?", _share, _all("small large", "labels")),
        Node("labels", "Do the groups' labels differ?", _labels, _all("differ alike", "")),
    )
}
"""The decision tree, reconstructed."""


def _verdict(case: AdviceRequest, taken: Mapping[str, str]) -> str:
    seen = case.situation
    if seen is None:
        return (
            f"{case.domain.priority.name} first, at epsilon {case.domain.priority.range}; what rows allow needs --data"
        )
    asked = f"a gap within {case.within:g} at epsilon {case.epsilon:,g}"
    if taken["audited"] == "no":
        epsilon = "" if seen.audit.epsilon is None else f"; or epsilon {seen.audit.epsilon:,g} with these rows"
        return f"too few rows for {asked}: it takes {_needed(seen.audit.people, seen.people)}{epsilon}"
    if taken["sampled"] == "few":
        return (
            f"enough rows for {asked} of this table; too few for the population's gap, which they tell within "
            f"{seen.reach:.3f}: it takes {_needed(seen.people_for_reach, seen.people)}"
        )
    least = max(seen.audit.people or 0, seen.people_for_reach)
    return f"enough rows for {asked}: {least:,} people would do"


def _needed(people: int | None, there: int) -> str:
    if people is None:
        return "more than 10,000,000 people"
    return f"{people:,} people with these shares, {people - there:,} more than there are"


def _recommended(case: AdviceRequest, taken: Mapping[str, str]) -> Iterator[PracticeAdvice]:
    seen, priority = case.situation, case.domain.priority
    if seen is not None:
        yield from _about_data(case, seen, taken)
    yield from _about_models(case, seen, taken)
    if seen is not None:
        for name, why in _about_practices(case, seen, taken):
            yield PracticeAdvice(name, PRACTICES[name], why, training_run(seen, case.epsilon, practice=name))
    for name, why in _about_mechanisms(priority.name, taken):
        yield PracticeAdvice(name, MECHANISMS[name], why, mechanism_run(seen, case.epsilon, name))


def _about_data(case: AdviceRequest, seen: Situation, taken: Mapping[str, str]) -> Iterator[PracticeAdvice]:
    needed, why = 0.0, ""
    if taken["audited"] == "no":
        if taken["affordable"] == "raise":
            assert seen.audit.epsilon is not None
            yield PracticeAdvice(
                "raise-epsilon",
                DATA["raise-epsilon"],
                f"epsilon {seen.audit.epsilon:,g} brings 95% of released gaps within {case.within:g}",
                plan(seen, seen.audit.epsilon),
            )
        needed = math.inf if seen.audit.people is None else seen.audit.people
        why = f"for gaps released at epsilon {case.epsilon:,g}"
    else:
        answering = seen.audit.batch
        why_audit = f"{answering.mechanism.removesuffix(SHRUNK)} does it at epsilon {case.epsilon:,g}"
        if seen.audit.epsilon is not None:
            why_audit += f"; {seen.audit.epsilon:,g} would do, and leaves more of a budget"
        if answering.law.noise_on == "attributes":
            turned = turning_probability(case.epsilon)
            why_audit += "; it publishes A" + (f" but for one person in {1 / turned:,.0f}" if turned > _NOBODY else "")
        yield PracticeAdvice("audit", DATA["audit"], why_audit, plan(seen, case.epsilon))
    if taken["sampled"] == "few" and seen.people_for_reach > needed:
        needed = seen.people_for_reach
        why = f"for the population's gap within {case.within:g}, noise apart"
    if needed:
        pooled = "; sites that pool rows count as one table" if case.domain.priority.name == "privacy" else ""
        many = _needed(int(needed) if math.isfinite(needed) else None, seen.people)
        yield PracticeAdvice("collect", DATA["collect"], f"{many}, {why}{pooled}", plan(seen, case.epsilon))


def _about_models(case: AdviceRequest, seen: Situation | None, taken: Mapping[str, str]) -> Iterator[PracticeAdvice]:
    name, why = {
        "fairness": ("pflr*", "fairness and coefficients that can be read come first"),
        "privacy": ("priv-lr", "privacy comes first"),
        "balance": ("dpf-nn", "all three count"),
    }[case.domain.priority.name]
    if taken.get("dominates") == "sampling":
        why += "; noise is not what errs most here, so that more epsilon buys little"
    yield PracticeAdvice(name, MODELS[name], why, training_run(seen, case.epsilon, practice=PLAIN, model=name))


def _about_practices(case: AdviceRequest, seen: Situation, taken: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    first, small = case.domain.priority.name, seen.table.groups[seen.smallest]
    if taken["dominates"] == "noise":
        noisy = f"noise errs more than sampling among {small}"
        yield from ((name, noisy) for name in ("public-pretraining", "adaptive-clipping", "subsampling"))
    else:
        yield PLAIN, "noise errs less than sampling, even in the smaller group: see what is wrong before mending it"
    if taken["share"] == "small":
        yield "synthetic", f"{small} are few"
        if first != "privacy":
            yield (
                "oversampling",
                f"{small} are few: {seen.sizes[1 - seen.smallest] / seen.sizes[seen.smallest]:.1f} others each",
            )
        if first == "balance":
            yield "group-epsilon", "adjustments by group are the paper's advice in this domain"
    if taken["labels"] == "differ":
        if first != "privacy":
            yield "thresholds", "labels differ: a model as accurate as can be has a gap, and a threshold each closes it"
        yield "fair-representation", "labels differ: what stands for A can be kept out before training"
    else:
        yield "calibration", "labels are alike: scores can mean the same in both groups at no cost of accuracy"


def _about_mechanisms(first: str, taken: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    yield "sparse-vector", "if many models are to be looked at"
    if taken.get("share") == "large":
        yield "propose-test-release", "both groups are large"
    if first == "privacy":
        yield "sample-and-aggregate", "if nobody may argue about groups' sizes"


def _percent(probability: float) -> str:
    return f"{100 * probability:.1f}%" if probability < 0.9999 else "more than 99.99%"
