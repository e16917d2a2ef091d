"""The seven protocols of Arcolezi, Makhlouf, Palamidessi (DBSec 2023, section 3.3): their parameters and their cost.

Each is given a domain of k values and epsilon. Where the paper's text and the authors' program (multi-freq-ldpy 0.2.5)
differ, this is the program: subset sizes are rounded and not rounded down, and OLH hashes to round(e^epsilon) + 1
values.

**GRR.** The value itself with probability e^eps / (e^eps + k - 1), else another: a subset of one. Its weight is
ln(e^eps / (k-1)) + ln(k-1) = eps.

**SS.** omega = max(1, round(k / (e^eps + 1))) values, the true one among them with p = omega e^eps / (omega e^eps + k -
omega). p / (1-p) = omega e^eps / (k - omega), so that the weight is eps for every omega, rounded or not. omega <= k/2,
so there is always a value that is out.

**BLH, OLH.** A hash function H for each person, public and uniform among all functions from the values to g others; the
hash of the value is released by GRR, so that the reported y is H(v) with probability p = e^eps / (e^eps + g - 1).
Encoded are the values whose hash is y. v is one of them with probability p. H at the other values is uniform and
independent of H(v) and of y, so each of them is one with probability 1/g exactly, independently: bits with q = 1/g.
The weight is ln(e^eps / (g-1)) + ln(g-1) = eps. (H and y together cost eps as well: H says nothing of v, and y given H
is GRR.) Programs hash with a seeded function from a table of 2^32 or so: their bits are nearly independent.

**RAPPOR** (one-time, also SUE). One-hot bits, each kept with probability e^(eps/2) / (e^(eps/2) + 1). The weight is
eps/2 for the bit that is missing and eps/2 for the one that is extra: eps.

**OUE.** p = 1/2 and q = 1 / (e^eps + 1). The weight is 0 + eps.

**THE.** One-hot numbers, each with Laplace noise of scale 2/eps; reported are those above the threshold t, chosen for
the least variance q (1-q) / (p-q)^2 of estimated frequencies. With c = e^(-eps/2) and u = e^(t eps/2) that is (2u - 1)
/ (c u^2 - 2u + 1)^2 up to a factor. Its derivative vanishes where 3 c u^2 - 2 (1+c) u + 1 = 0, whose larger root

    u = ((1 + c) + sqrt(1 - c + c^2)) / (3c)

is the only one with u >= 1, so that no search is needed. The polynomial is below 0 at u = c^(-1/2) and above it at u =
1/c, so t is in (1/2, 1): searching [0, 1] or [1/2, 1], as programs do, finds the same. 1-p = c u / 2 and q = 1 / (2u).

* Thresholding on the person's side releases bits. Their weight ln(p (1-q) / ((1-p) q)) is
  eps/2 + ln((2 - e^(-(1-t) eps/2)) (2 - e^(-t eps/2))): less than eps, about eps/2 + ln(8/3) for large eps.
* Thresholding on the server releases the numbers. Two values' densities at z have log-ratio eps/2 times
  (|z_v| - |z_v - 1|) - (|z_v'| - |z_v' - 1|), which is 2 at most, and is where z_v >= 1 and z_v' <= 0: eps.

**The fairest release of one attribute of two values** at exactly epsilon (Ghoukasian, Asoodeh, arXiv 2511.16377).
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
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from fairwall.laws.local.budgets import LocalPrivacyError, require_domain, require_epsilon
from fairwall.laws.local.encodings import Bits, EncodingDistribution, Flips, Numbers, Subsets


def rarer_0(_k: int, epsilon: float) -> Flips:
    """Return the fairest release where 0 is declared the rarer value."""
    return Flips((math.exp(-epsilon) / 2, 0.5))


def rarer_1(_k: int, epsilon: float) -> Flips:
    """Return the fairest release where 1 is declared the rarer value."""
    return Flips((0.5, math.exp(-epsilon) / 2))


L = TypeVar("L", bound=EncodingDistribution, covariant=True)

CLEAN = "clean"
"""Name used in place of a protocol where values are released unchanged: the paper's NonDP."""


@dataclass(frozen=True)
class LocalLaw(Generic[L]):
    """The public description of a protocol.

    `name`, `title`: the key in `LOCAL_LAWS`, in scenario files and in results; the name in reports. `parameters`: from
    k and epsilon to the encoding's distribution. `cost`: from epsilon to the privacy loss of the release, in closed
    form. `domain`: the only k allowed, and then for one attribute alone; None for any.
    """

    name: str
    title: str
    parameters: Callable[[int, float], L]
    cost: Callable[[float], float]
    domain: int | None = None

    def law(self, k: int, epsilon: float) -> L:
        """Return the distribution of the encoding of a value of 0 .. k-1.

        LocalPrivacyError for fewer than two values, a domain that the protocol does not allow, or an epsilon that is
        not above 0 and at most `EPSILON_MAX`.
        """
        self._require(k, epsilon)
        return self.parameters(k, epsilon)

    def loss(self, k: int, epsilon: float) -> float:
        """Return the exact privacy loss of the release, the same for every k: epsilon, or less for THE's bits.

        LocalPrivacyError as of `law`.
        """
        self._require(k, epsilon)
        return self.cost(epsilon)

    def _require(self, k: int, epsilon: float) -> None:
        require_domain(k)
        if self.domain not in (None, k):
            raise LocalPrivacyError(f"{self.name} is for an attribute of {self.domain} values, this one has {k}")
        require_epsilon(epsilon)


def grr(k: int, epsilon: float) -> Subsets:
    """Return the distribution of generalized randomized response."""
    return _subsets(k, 1, epsilon)


def ss(k: int, epsilon: float) -> Subsets:
    """Return the distribution of subset selection."""
    return _subsets(k, max(1, round(k / (math.exp(epsilon) + 1))), epsilon)


def blh(k: int, epsilon: float) -> Bits:
    """Return the distribution of binary local hashing: to two values."""
    return _hashed(k, 1, epsilon)


def olh(k: int, epsilon: float) -> Bits:
    """Return the distribution of optimal local hashing: to round(e^epsilon) + 1 values."""
    return _hashed(k, round(math.exp(epsilon)), epsilon)


def rappor(k: int, epsilon: float) -> Bits:
    """Return the distribution of one-time RAPPOR, or symmetric unary encoding."""
    turned = _one_in(1, epsilon / 2)
    return Bits(k, turned, turned)


def oue(k: int, epsilon: float) -> Bits:
    """Return the distribution of optimal unary encoding."""
    return Bits(k, 0.5, _one_in(1, epsilon))


def the(k: int, epsilon: float) -> Bits:
    """Return the distribution of thresholding with histogram encoding, where the person thresholds."""
    grown = _grown(epsilon)
    return Bits(k, grown / 2, math.exp(-epsilon / 2) / grown / 2)


def the_server(k: int, epsilon: float) -> Numbers:
    """Return the distribution of thresholding with histogram encoding, where the server thresholds."""
    return Numbers(k, epsilon, the_threshold(epsilon))


def the_threshold(epsilon: float) -> float:
    """Return THE's threshold t, in (1/2, 1), for an epsilon above 0."""
    return 1 + 2 * math.log(_grown(epsilon)) / epsilon


def _the_loss(epsilon: float) -> float:
    t = the_threshold(epsilon)
    return epsilon / 2 + math.log((2 - math.exp(-(1 - t) * epsilon / 2)) * (2 - math.exp(-t * epsilon / 2)))


def _grown(epsilon: float) -> float:
    """Return c u = e^(-(1-t) eps/2)."""
    c = math.exp(-epsilon / 2)
    return (1 + c + math.sqrt(1 - c + c * c)) / 3


def _one_in(others: float, epsilon: float) -> float:
    """Return GRR's error probability among `others` + 1 values: others / (e^epsilon + others)."""
    shrunk = others * math.exp(-epsilon)
    return shrunk / (1 + shrunk)


def _subsets(k: int, size: int, epsilon: float) -> Subsets:
    return Subsets(k, size, _one_in((k - size) / size, epsilon))


def _hashed(k: int, others: int, epsilon: float) -> Bits:
    """Return the distribution for hashes of others + 1 values."""
    return Bits(k, _one_in(others, epsilon), 1 / (others + 1))


_ALL: tuple[LocalLaw[Any], ...] = (
    LocalLaw("grr", "GRR", grr, float),
    LocalLaw("blh", "BLH", blh, float),
    LocalLaw("olh", "OLH", olh, float),
    LocalLaw("rappor", "RAPPOR", rappor, float),
    LocalLaw("oue", "OUE", oue, float),
    LocalLaw("ss", "SS", ss, float),
    LocalLaw("the", "THE", the, _the_loss),
    LocalLaw("the-server", "THE (server thresholds)", the_server, float),
    LocalLaw("fair-0", "Fairest, 0 rarer", rarer_0, float, domain=2),
    LocalLaw("fair-1", "Fairest, 1 rarer", rarer_1, float, domain=2),
)

LOCAL_LAWS: dict[str, LocalLaw[Any]] = {law.name: law for law in _ALL}
"""Every protocol by its name."""
