"""Fixes what noise comes to: whatever its people are, a second world's noisy numbers are those of the first.

So what a caller can learn beside noisy numbers is whatever differs. Also what noise is asked for is compared: law,
scale, grid and shape are public, but for the scale of smooth sensitivity, which is secret.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import compliance.answers.audits
import compliance.answers.groups
import compliance.answers.releases
import compliance.deployment.ledger
import compliance.deployment.policy.loading
import compliance.ledger
import compliance.ledger.sqlite
from compliance.mechanisms.local_protocols import LocalProtocol
from compliance.mechanisms.noise_on_gaps import ConcealLaplace
from compliance.noise.sampling import Noise
from compliance.records.people import Records
from compliance.records.same_people import Traits
from fairwall.laws.noise.row_noise import Ball

_NOBODY = Traits(bytes(16), 0, (), (), b"")
"""What a file shows of whom it is about, where that is not looked at: nothing of it is protected."""


@dataclass
class Tape:
    """What samplers have put out, in order, and what of each was public.

    Parameters
    ----------
    first : sequence of (tuple, output)
        Of the first world; there is none in that one itself.
    source : Noise
        Draws what is not on it.
    """

    source: Noise
    first: Sequence[tuple[tuple[Any, ...], Any]] = ()
    drawn: list[tuple[tuple[Any, ...], Any]] = field(default_factory=list)

    @property
    def asked(self) -> list[tuple[Any, ...]]:
        """What noise was asked for."""
        return [public for public, _ in self.drawn]

    def draw(self, public: tuple[Any, ...], sample: Callable[[], Any]) -> Any:
        """Put out what the first world did at this place; where that was asked for something else, what is sampled."""
        place = len(self.drawn)
        known = place < len(self.first) and self.first[place][0] == public
        output = self.first[place][1] if known else sample()
        self.drawn.append((public, output))
        return copy.copy(output)


@dataclass(frozen=True)
class Fixed:
    """Noise off a tape. See `compliance.noise.sampling.Noise`."""

    tape: Tape
    has_secret_scale: bool = False

    def laplace(self, values: NDArray[np.float64], scale: float, step: float) -> NDArray[np.float64]:
        return self._added("laplace", values, scale, step)

    def gaussian(self, values: NDArray[np.float64], sigma: float, step: float) -> NDArray[np.float64]:
        return self._added("gaussian", values, sigma, step)

    def cauchy(self, values: NDArray[np.float64], scale: float, step: float) -> NDArray[np.float64]:
        return replace(self, has_secret_scale=True)._added("cauchy", values, scale, step)

    def cube(self, values: NDArray[np.float64], scale: float, step: float, least: int = 0) -> NDArray[np.float64]:
        return self._added("cube", values, scale, step, least)

    def bernoulli(self, probability: float, size: int) -> NDArray[np.bool_]:
        return self._drawn("bernoulli", probability, size).view(_Coins)

    def bernoulli_exp(self, exponents: NDArray[np.float64]) -> NDArray[np.bool_]:
        # As secret as what they were made of.
        return self.tape.draw(("bernoulli_exp", exponents.shape), lambda: self.tape.source.bernoulli_exp(exponents))

    def integers(self, high: int, size: int) -> NDArray[np.int64]:
        return self._drawn("integers", high, size)

    def permutation(self, n: int) -> NDArray[np.int64]:
        return self._drawn("permutation", n)

    def _added(
        self, law: str, values: NDArray[np.float64], scale: float, step: float, *further: int
    ) -> NDArray[np.float64]:
        def sample() -> NDArray[np.float64]:
            return getattr(self.tape.source, law)(values, scale, step, *further)

        if scale == 0:  # rounding, which hides nothing
            return sample()
        return self.tape.draw((law, None if self.has_secret_scale else scale, step, *further, values.shape), sample)

    def _drawn(self, law: str, *numbers: float) -> Any:
        return self.tape.draw((law, *numbers), lambda: getattr(self.tape.source, law)(*numbers))


class _Coins(np.ndarray[Any, np.dtype[np.bool_]]):
    """Which attributes are turned over: what they are then is off the tape."""


@dataclass(frozen=True)
class _Balanced:
    """Noise by group: what counts are with it is off the tape."""

    tape: Tape
    noise: NDArray[np.int64]
    law: float | Ball

    __array_ufunc__ = None  # so that a table of counts leaves adding to this

    def __radd__(self, exact: NDArray[Any]) -> NDArray[Any]:
        return self.tape.draw(("balanced", self.law, exact.shape), lambda: exact + self.noise)


@contextmanager
def fixed(tape: Tape) -> Iterator[None]:
    """Have the service draw all of its noise off a tape, and digests under its key, which are as good as noise."""
    balanced_noise, ball_noise = compliance.answers.groups.balanced_noise, compliance.answers.groups.ball_noise
    turned, sanitise, release = Records.turned, LocalProtocol.sanitise, ConcealLaplace.release

    def keyed(sound: Callable[..., bytes]) -> Callable[..., bytes]:
        return lambda *given: tape.draw(("digest",), lambda: sound(*given))

    def balanced(noise: Noise, rate: float, rows: int, groups: int) -> _Balanced:
        return _Balanced(tape, balanced_noise(tape.source, rate, rows, groups), rate)

    def of_ball(noise: Noise, ball: Ball) -> list[_Balanced]:
        return [_Balanced(tape, each, ball) for each in ball_noise(tape.source, ball)]

    def sanitised(protocol: Any, values: NDArray[Any], domain: int, epsilon: float, draw: Any) -> NDArray[Any]:
        public = ("sanitise", protocol.public.name, domain, epsilon, values.shape)
        return tape.draw(public, lambda: sanitise(protocol, values, domain, epsilon, draw))

    def turned_over(records: Records, people: NDArray[np.bool_]) -> NDArray[np.uint8]:
        # Nobody's are turned over with noise off no tape: those are people who do not exist.
        is_bought = isinstance(people, _Coins)
        return tape.draw(("turned",), lambda: turned(records, people)) if is_bought else turned(records, people)

    def secretly(mechanism: Any, *asked: Any) -> Any:
        *about, noise = asked
        return release(mechanism, *about, replace(noise, has_secret_scale=True) if isinstance(noise, Fixed) else noise)

    with pytest.MonkeyPatch.context() as patch:
        for module in (compliance.answers.audits, compliance.answers.groups):
            patch.setattr(module, "noise_for", lambda *_: Fixed(tape))
        patch.setattr(compliance.answers.groups, "balanced_noise", balanced)
        patch.setattr(compliance.answers.groups, "ball_noise", of_ball)
        patch.setattr(Records, "turned", turned_over)
        patch.setattr(LocalProtocol, "sanitise", sanitised)
        patch.setattr(ConcealLaplace, "release", secretly)
        digesting = (
            (Records, "fingerprint"),
            (Traits, "sealed"),
            (compliance.deployment.ledger, "fingerprint_of_release"),
        )
        for owner, name in digesting:
            patch.setattr(owner, name, keyed(getattr(owner, name)))
        patch.setattr(
            compliance.deployment.policy.loading, "traits", lambda policy, _: (_NOBODY, policy.release and _NOBODY)
        )
        yield
