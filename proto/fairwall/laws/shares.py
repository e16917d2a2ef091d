"""What a policy says beforehand about how large groups may be: public, and no look at A."""

from dataclasses import dataclass

_POINTS = 10


@dataclass(frozen=True)
class Shares:
    """A range of shares of the disadvantaged group, and the least size of either.

    The range decides which mechanism and which of its parameters serve best, and nothing about privacy: a data set
    outside the range is protected as well as one inside.

    Parameters
    ----------
    low, high
        Above 0 and below 1, low not above high.
    minimum_group
        g, what both groups have at least, `fairwall.laws.sensitivity`: that is checked, and noise counts on it.
    """

    low: float = 0.05
    high: float = 0.5
    minimum_group: int = 1

    def __post_init__(self) -> None:
        if not 0 < self.low <= self.high < 1:
            raise ValueError("a range of shares lies above 0 and below 1")

    def counts(self, n: int) -> tuple[int, ...]:
        """Return evenly spaced numbers of disadvantaged people among n, each in g .. n-g; repeats are kept."""
        width = (self.high - self.low) / (_POINTS - 1)
        least = self.minimum_group
        return tuple(min(max(round(n * (self.low + i * width)), least), n - least) for i in range(_POINTS))


DEFAULT_SHARES = Shares()
