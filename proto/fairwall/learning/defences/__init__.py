"""Defences against distribution inference: ways to train a model with the secret bit b.

They are public (Kerckhoffs): an adaptive adversary trains its shadow models with the developer's, on its own rows.
"""

import numpy as np

from fairwall.learning.defences import fft, fft_checked, fft_paper, retraining
from fairwall.learning.defences.split import Defence, DefenceTask, ModelRows, Settings, TrainingSplit, deal
from fairwall.learning.ensemble import Ensemble
from fairwall.plugins import Plugin, Registry


def _checked(plugin: Plugin, defence: Defence) -> Defence:
    """Return a plug-in's defence with checks: one model for each bit, with finite weights, from training and tuning."""
    plugin.require(isinstance(defence, Defence), "is no Defence")

    def whole(models: Ensemble, task: DefenceTask) -> Ensemble:
        plugin.require(isinstance(models, Ensemble) and models.models == len(task.bits), "gave no model for each bit")
        finite = all(np.isfinite(layer).all() for layer in (*models.weights, *models.biases))
        plugin.require(finite, "gave models whose weights are not finite")
        return models

    def tune(models: Ensemble, task: DefenceTask) -> Ensemble:
        return whole(plugin.call(defence.tune, models, task), task)

    return Defence(lambda task: whole(plugin.call(defence.train, task), task), tune)


def _elsewhere(_: str) -> Defence:
    def train(task: DefenceTask) -> Ensemble:
        raise NotImplementedError

    return Defence(train)


DEFENCES: Registry[Defence] = Registry(
    "defences",
    {
        "none": Defence(retraining.train_undefended),
        "plain-finetune": Defence(retraining.train_undefended, fft.plain),
        "fft": Defence(retraining.train_undefended, fft.tune),
        "fft-checked": Defence(fft_checked.train, fft_checked.tune),
        "fft-paper": Defence(fft_paper.train, fft_paper.tune),
        "fft-symmetric": Defence(retraining.train_undefended, fft.tune_symmetric),
        "fft-multi": Defence(retraining.train_undefended, fft.tune_multi),
        "fft-weighted": Defence(retraining.train_undefended, fft.tune_weighted),
        "pooled": Defence(retraining.train_pooled),
        "dp-sgd": Defence(retraining.train_private),
        # Fine-tuning is not private. Without rehearsal it reads no row of G_b, and the promise to G_b's people still
        # holds; with rehearsal it reads these rows again, and the promise ends. G_{1-b}'s people are promised nothing.
        "dp-sgd+fft": Defence(retraining.train_private, fft.tune),
        "constant": Defence(retraining.train_constant),
    },
    _checked,
    _elsewhere,
)

__all__ = ["DEFENCES", "Defence", "DefenceTask", "ModelRows", "Settings", "TrainingSplit", "deal"]
