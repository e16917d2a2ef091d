"""Domains where models are used, and practices against a gap or against noise, with a paper's advice on both.

The paper is Watson, "From Statistical Disclosure Control to Fair AI" (arXiv 2601.17909). Its section VII-E names four
domains and three priorities; the other domains are ours, and each has the priority of the named ones that it resembles.
The practices are those of section VII, by their names in the training game. Each claim is derived or measured here;
where nothing was measured, the text says so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from fairwall.errors import UserError, did_you_mean, nearest

_WIDEST = 2.0


class AdviceError(UserError):
    """Advice that cannot be given. The text names the option."""


@dataclass(frozen=True)
class Priority:
    """The priority of a domain, and the paper's range of epsilon for it.

    ``above`` and ``below`` are the range, its ends left out where `open_ends`; ``most`` is the largest epsilon that we
    advise, ours where the paper has no upper end; ``default`` is ours.
    """

    name: Literal["fairness", "privacy", "balance"]
    puts_first: str
    above: float
    below: float
    open_ends: bool
    most: float
    default: float

    def place(self, epsilon: float) -> Literal["below", "within", "above"]:
        """Return where an epsilon lies in the paper's range."""
        if epsilon < self.above or (self.open_ends and epsilon == self.above):
            return "below"
        if epsilon > self.below or (self.open_ends and epsilon == self.below):
            return "above"
        return "within"

    @property
    def range(self) -> str:
        """The paper's range of epsilon in words."""
        if math.isinf(self.below):
            return f"above {self.above:g}"
        return f"below {self.below:g}" if not self.above else f"from {self.above:g} to {self.below:g}"


FAIRNESS = Priority(
    "fairness",
    "fairness and models that can be explained, at the price of privacy or of more rows",
    1,
    math.inf,
    True,
    5.0,
    2.0,
)
PRIVACY = Priority("privacy", "strong privacy, at the price of utility; sites pool their rows", 0, 1, True, 1.0, 0.5)
BALANCE = Priority(
    "balance", "all three at once, adjusted by group, with openness about what is not reached", 1, 3, False, 3.0, 2.0
)


@dataclass(frozen=True)
class Domain:
    """A place where models are used, and whether the paper names it."""

    name: str
    priority: Priority
    named: bool


DOMAINS = {
    domain.name: domain
    for domain in (
        Domain("criminal-justice", FAIRNESS, named=True),
        Domain("lending", FAIRNESS, named=True),
        Domain("medical-research", PRIVACY, named=True),
        Domain("personalised-services", BALANCE, named=True),
        Domain("hiring", FAIRNESS, named=False),
        Domain("insurance", FAIRNESS, named=False),
        Domain("education", FAIRNESS, named=False),
        Domain("public-statistics", PRIVACY, named=False),
        Domain("advertising", BALANCE, named=False),
    )
}


def find_domain(name: str) -> Domain:
    """Return a domain by its name, however the words are joined; AdviceError with the known domains."""
    spelled = "-".join(name.lower().replace("_", " ").replace("-", " ").split()).replace("ized", "ised")
    if spelled in DOMAINS:
        return DOMAINS[spelled]
    hint = did_you_mean(nearest(spelled, DOMAINS)) or ";"
    raise AdviceError(f"--domain: unknown domain {name!r}{hint} choose one of: {', '.join(DOMAINS)}")


def check_numbers(epsilon: float, within: float) -> None:
    """Raise AdviceError for an epsilon or F about which no advice is possible."""
    if not 0 < epsilon < math.inf:
        raise AdviceError("--epsilon: must be above 0 and finite")
    if not 0 < within < _WIDEST:
        raise AdviceError(f"--within: must be above 0 and below {_WIDEST:g}, the width of a gap's range")


Verdict = Literal["holds", "holds under a condition", "does not hold as the paper says it"]
HOLDS: Verdict = "holds"
CONDITION: Verdict = "holds under a condition"
FAILS: Verdict = "does not hold as the paper says it"


@dataclass(frozen=True)
class AdvisedPractice:
    """A practice, its trade-off, and whether the paper's claim about it holds in our own checks."""

    title: str
    trades: str
    verdict: Verdict
    checked: str


PLAIN = "plain"
"""The practice that adds nothing to training: the baseline for all others."""

PRACTICES = {
    PLAIN: AdvisedPractice(
        "train as it is",
        "nothing; what the other practices are compared with at the same epsilon",
        HOLDS,
        "a baseline claims nothing",
    ),
    "adaptive-clipping": AdvisedPractice(
        "clip gradients where they are, not at a fixed norm",
        "less noise once gradients shrink, for the budget that finding the norm takes",
        CONDITION,
        "finding the norm reads private gradients and is charged; on Adult at epsilon 1 it lost 0.7 points of "
        "accuracy, 0.5 of the smaller group's",
    ),
    "group-epsilon": AdvisedPractice(
        "give the smaller group a larger epsilon",
        "less noise for the group with the larger epsilon, for its members' protection",
        CONDITION,
        "it weakens the smaller group's promise: with the paper's 2 and 0.5 its members' odds may move by a factor of "
        "7.4, the others' by 1.6. On Adult at epsilon 1 and 4 it gained 0.1 points of its accuracy, within chance",
    ),
    "subsampling": AdvisedPractice(
        "train on random parts of the rows",
        "less noise at the same epsilon, for steps that see fewer rows",
        FAILS,
        "at one sampling rate it amplifies every row's promise alike, not the larger group's; sampling that group less "
        "often protects it more, and the smaller one less",
    ),
    "public-pretraining": AdvisedPractice(
        "train on public rows first, then privately",
        "a better start for the same budget, for leaning on public rows that may be unlike the private ones",
        CONDITION,
        "free only if the public rows are nobody's private ones; what it gains depends on how alike they are: compare",
    ),
    "thresholds": AdvisedPractice(
        "decide by a threshold for each group",
        "a small gap of an accurate model, for needing A at every decision, and for treating groups by different "
        "rules, which some laws forbid",
        CONDITION,
        "post-processing is free only where it reads no private rows: thresholds chosen on them are charged. On Adult "
        "at epsilon 1 the gap fell from 0.171 to -0.005 for 2.4 points of accuracy, 4.7 of the smaller group's",
    ),
    "calibration": AdvisedPractice(
        "calibrate scores within each group",
        "scores that mean the same in both groups, for error rates that differ where base rates do",
        CONDITION,
        "post-processing is free only where it reads no private rows: calibration on them is charged. It does not make "
        "the groups' rates of yes alike",
    ),
    "oversampling": AdvisedPractice(
        "repeat the smaller group's rows",
        "more weight for the smaller group, for its members' protection",
        CONDITION,
        "it costs epsilon: a row that stands k times is protected at k epsilon only, or the noise grows k-fold",
    ),
    "synthetic": AdvisedPractice(
        "add synthetic rows of the smaller group",
        "weight for the smaller group without a copy of anybody, for budget and for what the marginals miss",
        CONDITION,
        "the rows come from noisy marginals of private rows, and are charged; few rows give noisy marginals, so that "
        "it helps least where a group is smallest. On Adult it lost 0.5 points, and a little of the gap",
    ),
    "fair-representation": AdvisedPractice(
        "learn features that do not tell the groups apart",
        "models that cannot use A, for accuracy wherever features that stand for A also tell the outcome",
        CONDITION,
        "learning them is charged, and makes means alike, no more. On Adult at epsilon 1 the gap fell from 0.171 to "
        "0.075 for 0.9 points of accuracy, 1.1 of the smaller group's",
    ),
}
"""The training game's strategies: ``training.practice``."""

MODELS = {
    "pflr*": AdvisedPractice(
        "a fair and private logistic regression",
        "a small gap and coefficients that can be read, for accuracy",
        HOLDS,
        "Adult, epsilon 0.1: risk difference 0.026 in place of 0.178, accuracy 80.8 % in place of 84.3 % (priv-lr)",
    ),
    "priv-lr": AdvisedPractice(
        "a private logistic regression",
        "strong privacy at little cost of accuracy, for nothing done about the gap",
        HOLDS,
        "Adult, epsilon 0.1: accuracy 84.3 % in place of 85.2 % (lr), risk difference 0.178 in place of 0.172",
    ),
    "dpf-nn": AdvisedPractice(
        "a fair and private neural network",
        "a small gap of a flexible model, for accuracy, and for steps whose penalty is noisy too",
        HOLDS,
        "Adult, epsilon 0.1: risk difference 0.014 in place of 0.187, accuracy 80.4 % in place of 84.5 % (dp-nn)",
    ),
}
"""Models of `developer.training` that are advised: ``training.model``. Figures are those of docs/training.md."""

MECHANISMS = {
    "sparse-vector": AdvisedPractice(
        "ask only which models are above the limit",
        "any number of models for one price, for yes or no in place of a gap",
        HOLDS,
        "noes are free in its proof and in our privacy audit; it stops at the last allowed yes",
    ),
    "propose-test-release": AdvisedPractice(
        "a gap where groups prove to be large",
        "little noise for large groups, for a delta, and for no answer where the test fails",
        HOLDS,
        "it keeps its promise, but counts do better: median error 0.009 against 0.022 (1,000 people, 104 "
        "of them disadvantaged, epsilon 1)",
    ),
    "sample-and-aggregate": AdvisedPractice(
        "a mean over random blocks",
        "no argument about groups' sizes is needed, for answers that are pulled towards 0 where a group is small",
        HOLDS,
        "it keeps its promise, but counts do better: median error 0.009 against 0.026 (1,000 people, 104 "
        "of them disadvantaged, epsilon 1)",
    ),
}
"""Mechanisms of compliance that the paper advises. Figures are those of docs/mechanisms.md."""

DATA = {
    "collect": AdvisedPractice(
        "get more rows of the same kind",
        "every error falls, noise by 1/n and sampling by 1/sqrt(n), for the cost of asking more people",
        HOLDS,
        "noise falls by 1/n, faster than the paper's 1/sqrt(n): see fairwall papers show SD-20",
    ),
    "raise-epsilon": AdvisedPractice(
        "raise epsilon within the domain's range",
        "less noise with the rows that there are, for everybody's protection",
        HOLDS,
        "noise falls by 1/epsilon; sampling error does not fall at all",
    ),
    "audit": AdvisedPractice(
        "audit with what there is",
        "a gap known as well as asked, for its epsilon of the budget",
        HOLDS,
        "plan's answers agree with compliance's own mechanisms by simulation",
    ),
}
"""Measures on the data and the budget themselves."""
