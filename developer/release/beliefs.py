r"""What a release tells of each person's true attribute: Bayes's posterior.

The release z of a person's binary attribute a has the public likelihoods P(z | a). Who knows nothing else but what the
whole release tells of the share s of advantaged people has

    P(a = 1 | z) = s P(z | 1) / (s P(z | 1) + (1 - s) P(z | 0)),

with the s that makes the release likeliest, which expectation-maximisation finds: s becomes the mean of the posteriors,
again and again. Who also knows features x has s(x) in place of s, a logistic regression of a on x. Its labels are not
known, their posteriors are; the step that maximises is to fit the regression to these (Dempster, Laird, Rubin 1977).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from developer.reveal.logistic import fit
from fairwall.game.v1 import referee_service_pb2 as game
from fairwall.laws.local import LOCAL_LAWS

Released = NDArray[Any]
"""Encodings, shape (people, values of all columns): zeros and ones, or numbers where the receiver thresholds."""

_SHARE_STEPS = 200
_FIT_STEPS = 15
_EDGE = 1e-6

_CERTAIN = 350.0
"""Half the log-ratio of what leaves no doubt: its exponential is still a number."""


@dataclass(frozen=True, eq=False)
class Beliefs:
    """Guesses who is advantaged, uint8 (people,), from the release alone and from all that is known.

    And the share of people each of whose columns is released as the encoding of one value.
    """

    from_release: NDArray[np.uint8]
    from_everything: NDArray[np.uint8]
    consistent: float


def believe(
    terms: game.ReleaseTerms,
    features: NDArray[np.float64],
    labels: NDArray[np.uint8],
    encoded: Released | None,
) -> Beliefs:
    """Guess who is advantaged.

    Parameters
    ----------
    terms : ReleaseTerms
    features : ndarray, shape (people, columns)
        Codes of the columns that are not sensitive.
    labels : ndarray, shape (people,)
    encoded : ndarray, shape (people, values of all columns), optional
        The release; nothing is known without one.
    """
    log_ratio, consistent = np.zeros(len(labels)), np.ones(len(labels), np.bool_)
    for column, own in by_column(terms, encoded):
        if terms.protocol in LOCAL_LAWS:
            law = LOCAL_LAWS[terms.protocol].law(column.domain, column.share * terms.epsilon)
            consistent &= law.consistent(own)
            likelihood = law.log_likelihood(own)
        else:
            likelihood = np.where(own == 1, _CERTAIN, -_CERTAIN)
        if column.groups:
            log_ratio = likelihood[:, 1] - likelihood[:, 0]
    return Beliefs(
        (from_release(log_ratio) > 0.5).astype(np.uint8),
        (from_everything(log_ratio, np.column_stack([features, labels])) > 0.5).astype(np.uint8),
        float(consistent.mean()),
    )


def by_column(terms: game.ReleaseTerms, encoded: Released | None) -> Iterator[tuple[game.SensitiveColumn, Released]]:
    """Cut a release into its columns'; nothing without one."""
    start = 0
    for column in terms.columns if encoded is not None else ():
        assert encoded is not None, "just looked"
        yield column, encoded[:, start : start + column.domain]
        start += column.domain


def from_release(log_ratio: NDArray[np.float64]) -> NDArray[np.float64]:
    """Give P(advantaged | release) of each person, the share of advantaged people being told by the release alone.

    Parameters
    ----------
    log_ratio : ndarray, shape (people,)
        ln P(release | advantaged) - ln P(release | disadvantaged).

    Returns
    -------
    ndarray
        Shape (people,), in [0, 1].
    """
    share = 0.5
    for _ in range(_SHARE_STEPS):
        posterior = _posterior(log_ratio, np.log(share / (1 - share)))
        before, share = share, float(np.clip(posterior.mean(), _EDGE, 1 - _EDGE))
        if abs(share - before) < _EDGE / 10:
            break
    return _posterior(log_ratio, np.log(share / (1 - share)))


def from_everything(log_ratio: NDArray[np.float64], known: NDArray[np.float64]) -> NDArray[np.float64]:
    """Give P(advantaged | release, what else is known) of each person.

    Parameters
    ----------
    log_ratio : ndarray, shape (people,)
    known : ndarray, shape (people, d)
        Features and labels.

    Returns
    -------
    ndarray
        Shape (people,), in [0, 1].
    """
    spread = known.std(axis=0)
    scaled = (known - known.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    posterior = from_release(log_ratio)
    for _ in range(_FIT_STEPS):
        if not _EDGE < posterior.mean() < 1 - _EDGE:
            return posterior
        before, posterior = posterior, _posterior(log_ratio, fit(scaled, posterior).log_odds(scaled))
        if np.abs(posterior - before).mean() < _EDGE:
            break
    return posterior


def _posterior(log_ratio: NDArray[np.float64], log_odds: NDArray[np.float64] | float) -> NDArray[np.float64]:
    from_both = np.clip(log_ratio + log_odds, -700, 700)
    posterior: NDArray[np.float64] = 1 / (1 + np.exp(-from_both))
    return posterior
