"""What parties reported to the referee, and what ``trials.jsonl`` says of it, computed again from the messages.

`calls.py` and `messages.py` read what transcripts hold of each trial. What follows from that is compared, a module for
each thing that is reported: `audit_reports.py`, `reveal_statistics.py` and `inference_scores.py`, `loss_test.py`, and
`lines.py` for ``trials.jsonl``. What nothing tells is listed as not checked.
"""

from sim.recompute.findings import Contradiction, Recomputed
from sim.recompute.run import recompute

__all__ = ["Contradiction", "Recomputed", "recompute"]
