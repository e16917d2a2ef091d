"""Conversion of training settings from the wire to a defence's settings."""

from __future__ import annotations

from dataclasses import replace

from fairwall.game.v1 import inference_service_pb2 as inference
from fairwall.learning.defences import Settings


def settings_of(training: inference.Training) -> Settings:
    """Return a defence's settings, where 0 stands for the default; ValueError for settings that no defence can have."""
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
