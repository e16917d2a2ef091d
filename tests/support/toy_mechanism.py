"""A mechanism in one file, with one row in each of two tables: Laplace noise for half of epsilon.

``python tests/support/toy_mechanism.py MODULE ARGUMENT...`` runs a program that knows it.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib import import_module

from fairwall.rpc import kernels

if __name__ == "__main__":
    kernels.fix()  # before numpy is imported, as every party does it

from fairwall.laws.mechanisms import table
from fairwall.laws.mechanisms.calibration import laplace_law, laplace_loss
from fairwall.laws.noise.distributions import Laplace

LAW = table.MechanismLaw(
    noise_on="gaps",
    error=lambda b: laplace_law(b.metric, b.people, b.queries, b.epsilon / 2, b.minimum_group),
    counts_on_groups=True,
    interval=table.Interval(Laplace, is_added=True),
    independent=True,
    loss=lambda b: laplace_loss(b.metric, b.n0, b.n1, b.queries, b.epsilon / 2, b.minimum_group),
)


def toy():
    """Make the mechanism; a developer's process must not import compliance."""
    from compliance.mechanisms.noise_on_gaps import LaplaceMechanism

    @dataclass(frozen=True)
    class Toy(LaplaceMechanism):
        name: str = "toy"
        title: str = "Toy"

        def release(self, question, facts, epsilon, delta, noise):
            return LaplaceMechanism().release(question, facts, epsilon / 2, delta, noise)

    return Toy()


if __name__ == "__main__":
    module, *arguments = sys.argv[1:]
    table.MECHANISM_LAWS["toy"] = LAW  # type: ignore[index]
    if module != "developer.__main__":
        from compliance.mechanisms import MECHANISMS

        MECHANISMS["toy"] = toy()
    sys.argv = [module, *arguments]
    import_module(module).main()
