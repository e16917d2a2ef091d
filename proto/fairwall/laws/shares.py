"""What a policy says beforehand about how large the disadvantaged group may be: public, and no look at A."""

from dataclasses import dataclass

_POINTS = 10


@dataclass(frozen=True)
class Shares:
    """A range of shares of the disadvantaged group.

    It decides which mechanism and which of its parameters serve best, and nothing about privacy: a data set outside the
    range is protected as well as one inside.

    Parameters
    ----------
    low, high
        Above 0 and below 1, low not above high.
    """

    low: float = 0.05
    high: float = 0.5

    def __post_init__(self) -> None:
        if not 0 < self.low <= self.high < 1:
            raise ValueError("a range of shares lies above 0 and below 1")

    def counts(self, n: int) -> tuple[int, ...]:
        """Return evenly spaced numbers of disadvantaged people among n, each in 1 .. n-1; repeats are kept."""
        width = (self.high - self.low) / (_POINTS - 1)
        return tuple(min(max(round(n * (self.low + i * width)), 1), n - 1) for i in range(_POINTS))


DEFAULT_SHARES = Shares()
