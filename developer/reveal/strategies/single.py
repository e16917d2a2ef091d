"""Single query (Hamman, Chen, Dutta, FAccT 2023, Example 1).

A model that accepts the target alone has the gap ``1/N1`` if the target is advantaged and ``-1/N0`` if not.
"""

from developer.reveal.strategies.sizes import alone
from developer.reveal.strategies.strategy import Hand, Reveal, aimed


def play(hand: Hand) -> Reveal:
    """Read the target's attribute off the sign of one gap."""
    (gap,) = hand.auditor.gaps(alone(hand.people, hand.target)[None])
    return aimed(hand, gap > 0)
