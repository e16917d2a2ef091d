"""Published variants of the sparse vector technique that are not private: test subjects, never to be served.

Numbered as in Figure 1 of Lyu, Su, Li, VLDB 2017, which has the counterexamples. Here each is the sound mechanism with
another law, under the sound one's name, by which its record is found. Gaps of which the variants release noisy values
are only compared.
"""

from dataclasses import dataclass

from compliance.mechanisms.selection import SparseVectorMechanism
from fairwall.laws.mechanisms.selection import SparseVectorNoise


@dataclass(frozen=True)
class RothNotes(SparseVectorMechanism):
    """Algorithm 3 (Roth's lecture notes, 2011), without the released values: noise of c instead of 2 c on the queries.

    The notes also release the noisy gap of each yes, drawn with the noise of the comparison, which bounds the secret
    threshold and makes it infinitely worse. What remains costs 3/2 of epsilon.
    """

    def law(self, sensitivity: float, epsilon: float) -> SparseVectorNoise:
        half = epsilon / 2
        return SparseVectorNoise(
            self.threshold, sensitivity / half, self.positives * sensitivity / half, self.positives
        )


@dataclass(frozen=True)
class LeeClifton(SparseVectorMechanism):
    """Algorithm 4 (Lee, Clifton, 2014): the queries' noise does not grow with c. Costs (1 + 6 c)/4 of epsilon."""

    def law(self, sensitivity: float, epsilon: float) -> SparseVectorNoise:
        quarter = epsilon / 4
        return SparseVectorNoise(self.threshold, sensitivity / quarter, sensitivity / (3 * quarter), self.positives)


@dataclass(frozen=True)
class Stoddard(SparseVectorMechanism):
    """Algorithm 5 (Stoddard, Chen, Machanavajjhala, 2014): no noise on the queries, no end. Costs infinitely much."""

    def law(self, sensitivity: float, epsilon: float) -> SparseVectorNoise:
        return SparseVectorNoise(self.threshold, sensitivity / (epsilon / 2), 0.0, None)


@dataclass(frozen=True)
class Chen(SparseVectorMechanism):
    """Algorithm 6 (Chen, Xiao, Zhang, Xu, 2015): no end. Costs more with every query."""

    def law(self, sensitivity: float, epsilon: float) -> SparseVectorNoise:
        half = epsilon / 2
        return SparseVectorNoise(self.threshold, sensitivity / half, sensitivity / half, None)
