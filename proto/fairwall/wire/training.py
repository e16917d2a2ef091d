"""How models are trained: from the wire to the settings of a defence."""

from __future__ import annotations

from dataclasses import replace

from fairwall.game.v1 import inference_service_pb2 as inference
from fairwall.learning.defences import Settings


def settings_of(training: inference.Training) -> Settings:
    """Read the settings of a defence; 0 stands for the defence's own.

    ValueError for settings that no defence can have.
    """
    settings = Settings(
        strength=training.strength,
        rehearsal=training.rehearsal,
        purity=training.purity,
        rows=training.rows or None,
        other_rows=training.other_rows or None,
        epsilon=training.epsilon,
        delta=training.delta,
        adaptive_clipping=training.adaptive_clipping,
        epochs=training.iterations == inference.ITERATIONS_EPOCHS,
        small_table=training.small_table,
    )
    if training.steps:
        settings = replace(settings, recipe=replace(settings.recipe, steps=training.steps))
    if training.tune_steps:
        settings = replace(settings, tune_steps=training.tune_steps)
    return settings
