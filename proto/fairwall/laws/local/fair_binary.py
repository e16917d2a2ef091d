"""The fairest release of one attribute of two values at exactly epsilon (Ghoukasian, Asoodeh, arXiv 2511.16377).

**The statement**, as the authors' program has it (github.com/hradghoukasian/ldp_fairness, "Theorem 1"): keep the rarer
value with probability 1 - e^-eps / 2 and the commoner one with probability 1/2. For the released value Z and the label
Y, that minimises the unfairness |P(Y=1 | Z=1) - P(Y=1 | Z=0)| (and the largest |P(Y=1 | Z=z) / P(Y=1) - 1| too).

**Where it holds.** Let a value A be 0 with probability s_0 and 1 with probability s_1; let 0 be kept with probability p
and 1 with probability q, both at least 1/2. Y and Z are independent given A, so that the unfairness is

    |P(Y=1 | A=1) - P(Y=1 | A=0)| s_0 s_1 (p + q - 1) / (P(Z=0) P(Z=1)).

The label enters through a factor only. The loss is the larger of ln(q / (1-p)) and ln(p / (1-q)). Where the first one
is eps, q = e^eps (1-p) and P(Z=1) = (1-p) w with w = s_0 + s_1 e^eps, and the factor that depends on the channel is

    (e^eps - 1) / (w (1 - (1-p) w)),

which is least where 1-p is least: at q = 1/2, p = 1 - e^-eps / 2. There it is 2 (1-c) / (1 - s_0^2 (1-c)^2) with
c = e^-eps; where the second ratio is e^eps, the same with s_1 in place of s_0. So the rarer value is kept more often.
The least unfairness grows with eps: no p and q from 1/2 that cost at least eps have less.

**Where it does not.** The optimum needs a cost of at least eps: among all p and q from 1/2 that cost at most eps the
fair coin p = q = 1/2 has no unfairness, and costs nothing. Nor may p and q be below 1/2: on the same curve with a
smaller 1-p the unfairness is less.

**What it is.** GRR's release, of which the commoner value is turned into the rarer one with probability (1-c) / 2.
The holder of GRR's release can do that without any attribute. And p + q - 1 is below 1/2 for every eps.

**Which value is rarer** depends on the data, and looking it up would cost more than eps. So it is declared publicly
here, by the protocol's name. A wrong declaration loses the optimum and no privacy: the loss is eps for all data.
"""

from __future__ import annotations

import math

from fairwall.laws.local.law import Flips


def rarer_0(_k: int, epsilon: float) -> Flips:
    """Return the fairest release where 0 is declared the rarer value."""
    return Flips((math.exp(-epsilon) / 2, 0.5))


def rarer_1(_k: int, epsilon: float) -> Flips:
    """Return the fairest release where 1 is declared the rarer value."""
    return Flips((0.5, math.exp(-epsilon) / 2))
