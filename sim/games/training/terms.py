"""What the parties are told of how a model is trained."""

from __future__ import annotations

from fairwall.game.v1 import training_service_pb2 as training
from sim.games.training.scenario import TrainingScenario


def terms_of(scenario: TrainingScenario) -> training.ModelTerms:
    """Say how a scenario's model is trained."""
    asked = scenario.training
    return training.ModelTerms(
        model=asked.model,
        practice=asked.practice,
        epsilon=asked.epsilon,
        delta=asked.delta,
        statistics_share=asked.statistics_share,
        strength=asked.strength,
        steps=asked.steps,
        batch=asked.batch,
    )
