"""The practices of section VII of [SD], by name: ways to reduce a private network's loss on the disadvantaged group.

Each trains one private network for a task and reports the cost of each step that reads private rows. [SD] is arXiv
2601.17909. Strengths were chosen by hand; the choice is not accounted for.
"""

from developer.training.practice import (
    calibration,
    descent,
    fair_representation,
    public_pretraining,
    rates,
    synthetic,
    thresholds,
)
from developer.training.practice.practice import Decider, PracticeTask, Practised, TrainingPractice

PRACTICES: dict[str, TrainingPractice] = {
    "plain": TrainingPractice(
        descent.plain,
        "the private network as it is",
        "nothing: what the others are held against",
    ),
    "adaptive-clipping": TrainingPractice(
        descent.adaptive_clipping,
        "a clipping norm that follows the gradients",
        "a little noise for knowing how long gradients are",
    ),
    "group-epsilon": TrainingPractice(
        rates.group_epsilon,
        "a larger epsilon for the disadvantaged group",
        "the disadvantaged group's privacy for its accuracy",
        groups=True,
    ),
    "subsampling": TrainingPractice(
        descent.subsampling,
        "many small batches drawn at random",
        "large batches for less noise in each of more steps",
    ),
    "public-pretraining": TrainingPractice(
        public_pretraining.train,
        "pre-training on public rows",
        "the public rows' privacy for a better start",
        public=True,
    ),
    "thresholds": TrainingPractice(
        thresholds.train,
        "thresholds by group after training",
        "accuracy, noise for a histogram, and decisions that differ by group, for equal rates",
        groups=True,
    ),
    "calibration": TrainingPractice(
        calibration.train,
        "scores calibrated after training",
        "noise for a histogram, for scores that mean what they say",
    ),
    "oversampling": TrainingPractice(
        rates.oversampling,
        "the disadvantaged group read more often",
        "more noise for everybody, for more weight of the disadvantaged group",
        groups=True,
    ),
    "synthetic": TrainingPractice(
        synthetic.train,
        "synthetic rows of the disadvantaged group",
        "noise for synthetic rows, for more rows of the disadvantaged group",
        groups=True,
    ),
    "fair-representation": TrainingPractice(
        fair_representation.train,
        "rows without the direction in which the groups differ",
        "what that direction says of the label, and noise for finding it, for a smaller gap",
    ),
}
"""Every practice by its name."""

__all__ = ["PRACTICES", "Decider", "PracticeTask", "Practised", "TrainingPractice"]
