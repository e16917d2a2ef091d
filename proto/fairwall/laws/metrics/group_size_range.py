"""A policy's public range of group sizes, set without looking at A."""

from dataclasses import dataclass

_POINTS = 10


@dataclass(frozen=True)
class Shares:
    """A range of shares of the disadvantaged group, and the least size of either group.

    The range decides which mechanism and parameters serve best; epsilon holds outside it as well. What a batch reveals
    (`fairwall.laws.privacy.exposure`) depends on the least size of the smaller group: a policy's g, or without a policy
    the range.

    `low`, `high`: above 0 and below 1, low not above high. `minimum_group`: g, the least size of both groups,
    `fairwall.laws.metrics.sensitivity`: checked, and noise depends on it. `by_policy`: whether g is a policy's, which
    allows groups of any size from g on; else they are within the range.
    """

    low: float = 0.05
    high: float = 0.5
    minimum_group: int = 1
    by_policy: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.low <= self.high < 1:
            raise ValueError("a range of shares lies above 0 and below 1")

    def counts(self, n: int) -> tuple[int, ...]:
        """Return evenly spaced numbers of disadvantaged people among n, each in g .. n-g; repeats are kept."""
        width = (self.high - self.low) / (_POINTS - 1)
        least = self.minimum_group
        return tuple(min(max(round(n * (self.low + i * width)), least), n - least) for i in range(_POINTS))

    def allowed(self, n: int) -> tuple[int, int]:
        """Return the least and the largest size of the smaller group of n people; both from 1 to n/2."""
        if self.by_policy:
            least, most = self.minimum_group, n // 2
        else:
            sizes = [min(n0, n - n0) for n0 in self.counts(n)]
            least, most = min(sizes), max(sizes)
        return max(1, min(least, n // 2)), max(1, most)


DEFAULT_SHARES = Shares()
