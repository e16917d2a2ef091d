"""The practices of section VII of [SD], by name: how a private network may lose less on the disadvantaged group.

Each trains one private network for a task and says what each step costs that reads private rows. [SD] is arXiv
2601.17909. Strengths were chosen by hand; choosing is not accounted for.
"""

from developer.training.practice import (
    adaptive_clipping,
    calibration,
    fair_representation,
    group_epsilon,
    oversampling,
    plain,
    public_pretraining,
    subsampling,
    synthetic,
    thresholds,
)
from developer.training.practice.practice import Decider, Practice, Practised, Task

PRACTICES: dict[str, Practice] = {
    "plain": Practice(
        "the private network as it is",
        "nothing: what the others are held against",
        False,
        False,
        plain.train,
    ),
    "adaptive-clipping": Practice(
        "a clipping norm that follows the gradients",
        "a little noise for knowing how long gradients are",
        False,
        False,
        adaptive_clipping.train,
    ),
    "group-epsilon": Practice(
        "a larger epsilon for the disadvantaged group",
        "the disadvantaged group's privacy for its accuracy",
        True,
        False,
        group_epsilon.train,
    ),
    "subsampling": Practice(
        "many small batches drawn at random",
        "large batches for less noise in each of more steps",
        False,
        False,
        subsampling.train,
    ),
    "public-pretraining": Practice(
        "pre-training on public rows",
        "the public rows' privacy for a better start",
        False,
        True,
        public_pretraining.train,
    ),
    "thresholds": Practice(
        "thresholds by group after training",
        "accuracy, noise for a histogram, and decisions that differ by group, for equal rates",
        True,
        False,
        thresholds.train,
    ),
    "calibration": Practice(
        "scores calibrated after training",
        "noise for a histogram, for scores that mean what they say",
        False,
        False,
        calibration.train,
    ),
    "oversampling": Practice(
        "the disadvantaged group read more often",
        "more noise for everybody, for more weight of the disadvantaged group",
        True,
        False,
        oversampling.train,
    ),
    "synthetic": Practice(
        "synthetic rows of the disadvantaged group",
        "noise for synthetic rows, for more rows of the disadvantaged group",
        True,
        False,
        synthetic.train,
    ),
    "fair-representation": Practice(
        "rows without the direction in which the groups differ",
        "what that direction says of the label, and noise for finding it, for a smaller gap",
        False,
        False,
        fair_representation.train,
    ),
}
"""Every practice by its name."""

__all__ = ["PRACTICES", "Decider", "Practice", "Practised", "Task"]
