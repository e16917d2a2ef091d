"""A grey-box test of privacy: neighbours, the same noise, and what is done with it compared call by call.

The idea is that of Re:cord-play (arXiv 2602.17454). A mechanism answers about one data set, and everything that noise
put out is kept. It then answers about a neighbour and gets the same noisy numbers. Sound is

* **the same draws**, in order, shape and grid: else what is drawn depends on the secret;
* **the same release**, to the last bit: answers, facts, intervals and joint draws are made of noisy and public numbers;
* **draws that cost no more than is charged**: how much likelier the same numbers are on one side follows from the
  values and scales handed to each call (`recorded.costs`), and adds up.

And a repeat on the first data set gives the same, or something else was drawn beside the noise. Of what claims epsilon
alone, all of this holds for whatever noise puts out: so numbers are not only drawn, but also put where gaps are, and
far off. What claims a delta as well is wrong on a draw with that probability at most, and its numbers are drawn.

By composition a draw costs what it tells, used or not. Three proofs say less, and are tried before anybody is accused:
permute and flip (`recorded`); a draw that nothing released depends on costs nothing (propose, test, release); and of
choices, where a threshold and whatever was chosen are raised together, and all else keeps its noise, only these cost
(the sparse vector; the noisy largest).
"""

from __future__ import annotations

import inspect
import linecache
import math
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from compliance.mechanisms import mechanism as mechanism_module
from compliance.mechanisms import promise
from compliance.mechanisms.mechanism import NO_FACTS, Facts, Mechanism, Release, Reusable
from compliance.noise.sampling import Seeded
from sim.privacy_audit import foreign, recorded
from sim.privacy_audit.pairs import Pair
from sim.privacy_audit.recorded import NUMBERS, Call, Choose, Coins, Place, Recorder, costs, replayed, steered

Kind = Literal["branch", "grid", "scale", "sensitivity", "output", "randomness"]

ABOUT: dict[Kind, str] = {
    "branch": "what is drawn depends on the secret",
    "grid": "the grid or the shape of noise depends on the secret",
    "scale": "the scale of noise depends on the secret, and is not paid for",
    "sensitivity": "values move further than their noise pays for",
    "output": "what is released depends on more of the secret than noisy numbers",
    "randomness": "something is drawn beside the noise that is given",
}

_ROUNDING = 1e-7
"""By which part of the claim costs may exceed it: float64 has computed both."""

_SESSIONS = ((1.0, 1.0), (1.0, 2.0), (1.0,))
"""Batches of each session, by the factor of epsilon: noise is drawn, steered near gaps, and far off."""

_DRAWS = 3


@dataclass(frozen=True)
class Fault:
    """What is wrong, in which line, and on which neighbours it showed.

    `places` are that line and, of a call of the noise, those that led there. `batch` counts the session's from 1.
    `cost` is what the batch's draws cost where that is too much, else None.
    """

    kind: Kind
    places: tuple[Place, ...]
    pair: str
    batch: int
    cost: float | None

    @property
    def source(self) -> str:
        """The text of the line."""
        return linecache.getline(*self.places[0]).strip()


@dataclass(frozen=True, eq=False)
class _Run:
    """What a batch came to: the release or what was raised, its bits, and the calls of noise."""

    release: Release | None
    raised: Exception | None
    image: Any
    calls: list[Call]


@dataclass(frozen=True, eq=False)
class _Batch:
    """A batch that is put to a mechanism, about either of two neighbours, with the facts bought before."""

    mechanism: Mechanism
    pair: Pair
    facts: Facts
    epsilon: float
    delta: float
    draw: int
    folders: frozenset[Path]

    def run(self, choose: Choose, *, other: bool = False) -> _Run:
        question = self.pair.second if other else self.pair.first
        recorder, seed = Recorder(Seeded(np.random.default_rng(self.draw)), choose), np.random.default_rng(0)
        try:
            release = self.mechanism.release(question, self.facts, self.epsilon, self.delta, recorder)
            joint = None if release.joint is None else release.joint(_DRAWS, seed)
        except Exception as error:
            return _Run(None, error, type(error).__name__, recorder.calls)
        told = (release.values, dict(release.facts), release.low, release.high, release.likely, joint)
        return _Run(release, None, _image(told), recorder.calls)

    def begin(self) -> Choose:
        """Say what noise puts out first: with a delta what is drawn, as of what is seldom nothing is promised."""
        if self.draw == 0 or self.delta:
            return lambda _, __: None
        middle = (self.pair.first.gaps() + self.pair.second.gaps()) / 2
        return steered(np.nan_to_num(middle, posinf=0.0, neginf=0.0), far=self.draw > 1)

    @property
    def charged(self) -> tuple[float, float]:
        """Epsilon and delta that are charged."""
        if isinstance(self.mechanism, Reusable) and self.mechanism.is_free(self.facts, self.epsilon, self.pair.first):
            return 0.0, 0.0
        loss = self.mechanism.cost(self.epsilon, self.delta)
        return loss.epsilon, loss.delta


def faults(mechanism: Mechanism, pairs: Iterable[Pair], epsilon: float, delta: float) -> tuple[Fault, ...]:
    """Return what is wrong with a mechanism: one fault for each kind and line, with the first neighbours that show it.

    Parameters
    ----------
    mechanism : Mechanism
        Anybody's. It is sound not to find fault with it; to find none proves nothing of neighbours that are not tried.
    pairs : iterable of Pair
        At least one.
    epsilon, delta : float
        What a batch is asked for at.

    Raises
    ------
    Exception
        What the mechanism raises whoever is who.
    """
    found: dict[tuple[Kind, Place], Fault] = {}
    folders = _folders(mechanism)
    for pair in pairs:
        for draw in range(len(_SESSIONS)):
            for fault in _session(mechanism, pair, epsilon, delta, draw, folders):
                found.setdefault((fault.kind, fault.places[0]), fault)
    return tuple(found.values())


def _session(
    mechanism: Mechanism, pair: Pair, epsilon: float, delta: float, draw: int, folders: frozenset[Path]
) -> Iterator[Fault]:
    facts = NO_FACTS
    for number, factor in enumerate(_SESSIONS[draw], start=1):
        if mechanism.refuses(pair.first.metric, factor * epsilon, delta) is not None:
            return
        batch = _Batch(mechanism, pair, facts, factor * epsilon, delta, draw, folders)
        first = batch.run(batch.begin())
        wrong = _compared(batch, first)
        if wrong is not None:
            kind, places, cost = wrong
            yield Fault(kind, places, pair.about, number, cost)
            return
        if first.release is None:
            if draw == 0 and first.raised is not None:
                raise first.raised
            return
        facts = {**facts, **first.release.facts}


def _compared(batch: _Batch, first: _Run) -> tuple[Kind, tuple[Place, ...], float | None] | None:
    """Return the first fault: what it is, where, and what the draws cost."""
    tape = replayed(first.calls)
    if batch.draw == 0 and batch.facts is NO_FACTS and not _is_same(first, batch.run(batch.begin())):
        return "randomness", _parting(batch, batch.begin(), batch.begin(), other=False, after=0), None
    second = batch.run(tape, other=True)
    for at in range(max(len(first.calls), len(second.calls))):
        one, two = (run.calls[at] if at < len(run.calls) else None for run in (first, second))
        if one is None or two is None or not one.is_alike(two):
            if one is not None and two is not None and one.kind == two.kind and one.site == two.site:
                return "grid", _place(one, batch.folders), None
            return "branch", _parting(batch, batch.begin(), tape, other=True, after=None), None
    if first.image != second.image:
        hidden = sum(not call.is_rounding for call in first.calls)
        return "output", _parting(batch, batch.begin(), tape, other=True, after=hidden or None), None
    epsilon, delta = batch.charged
    most = epsilon * (1 + _ROUNDING)
    spent = costs(first.calls, second.calls, delta)
    least = float(spent.sum())
    if least > most:
        least = min(least, *_by_other_proofs(batch, first, second, spent, delta))
    if least <= most:
        return None
    scaled = [call.scale != other.scale for call, other in zip(first.calls, second.calls, strict=True)]
    worst = int(np.argmax(np.where(scaled, np.inf, 0.0) if any(scaled) else spent))
    kind: Kind = "scale" if any(scaled) else "sensitivity"
    return kind, _place(first.calls[worst], batch.folders), least


def _is_same(first: _Run, second: _Run) -> bool:
    """Whether a repeat did all the same."""
    alike = [
        one.is_alike(two) and one.scale == two.scale and np.array_equal(one.values, two.values, equal_nan=True)
        for one, two in zip(first.calls, second.calls, strict=False)
    ]
    return len(first.calls) == len(second.calls) and all(alike) and first.image == second.image


def _by_other_proofs(
    batch: _Batch, first: _Run, second: _Run, spent: NDArray[np.float64], delta: float
) -> Iterator[float]:
    """Yield what the draws cost where not all of them do: see the module."""
    used = [bool(cost) and not _is_unread(batch, first, at) for at, cost in enumerate(spent)]
    yield float(spent[used].sum())
    assert first.release is not None
    told = np.asarray(first.release.values)
    if not np.isin(told, (0, 1)).any() or not np.isin(told[~np.isnan(told)], (0, 1)).all():
        return
    apart = [one.values - two.values for one, two in zip(first.calls, second.calls, strict=True)]
    farthest = max((float(np.abs(each).max()) for each in apart if each.shape == told.shape), default=0.0)
    for sign in (1, -1):

        def raised(at: int, call: Call, sign: int = sign) -> NDArray[Any] | None:
            before = first.calls[at] if at < len(first.calls) else call
            if call.kind != "laplace" or not before.is_alike(call):
                return replayed(first.calls)(at, call)
            step = call.public[1]
            up = before.output + sign * (math.ceil(farthest / step) + 1) * step
            kept = before.output + (np.rint(call.values / step) - np.rint(before.values / step)) * step
            if call.values.shape == told.shape and farthest:
                return np.where(told == 1, up, kept)
            return up if np.array_equal(call.values, before.values) else None

        again = batch.run(raised, other=True)
        if again.image == first.image and len(again.calls) == len(first.calls):
            yield float(costs(first.calls, again.calls, delta).sum())


def _is_unread(batch: _Batch, first: _Run, at: int) -> bool:
    """Whether nothing is released of a draw, and nothing is drawn because of it."""
    if first.calls[at].kind not in NUMBERS:
        return False

    def changed(sign: float) -> Choose:
        def choose(number: int, call: Call) -> NDArray[Any] | None:
            if number == at and call.kind in NUMBERS:
                away = sign * np.rint(1e3 * call.scale / call.public[1]) * call.public[1]
                return np.asarray(call.values * 0 + away)
            return replayed(first.calls)(number, call)

        return choose

    return all(_is_same(first, batch.run(changed(sign))) for sign in (1.0, -1.0))


# ---- which line


def _folders(mechanism: Mechanism) -> frozenset[Path]:
    """Return where a mechanism's own code is: its function, or its class and what that is made from."""
    own: Any = getattr(mechanism, "function", mechanism)
    kinds = [own] if inspect.isfunction(own) else [kind for kind in type(own).__mro__ if kind is not object]
    found = set[Path]()
    for kind in kinds:
        with suppress(TypeError, OSError):  # made by no file
            found.add(Path(inspect.getsourcefile(kind) or "").resolve().parent)
    return frozenset(found)


@cache
def _is_own(file: str, folders: frozenset[Path]) -> bool:
    path = Path(file).resolve()
    return path.parent in folders and path not in _TRUSTED


_TRUSTED = {
    Path(str(module.__file__)).resolve()
    for module in (mechanism_module, promise, recorded, foreign, sys.modules[__name__])
}
"""Code around a mechanism's own."""


def _place(call: Call, folders: frozenset[Path]) -> tuple[Place, ...]:
    """Return the lines that called the noise: of the mechanism's own code, where there are any."""
    return tuple(place for place in call.site if _is_own(place[0], folders)) or call.site[:1]


@dataclass(frozen=True)
class _Event:
    """A line that is about to run, or a return: in which function, after which line, after how many draws."""

    place: Place
    before: Place
    function: str
    draws: int
    local: dict[str, Any]


def _traced(batch: _Batch, choose: Choose, *, other: bool) -> list[_Event]:
    """Run a batch and note each line of the mechanism's own code, with what its variables are."""
    events, last, drawn = list[_Event](), dict[Any, Place](), [0]

    def counted(at: int, call: Call) -> NDArray[Any] | None:
        drawn[0] += 1
        return choose(at, call)

    def trace(frame: Any, event: str, value: Any) -> Any:
        file = frame.f_code.co_filename
        if not _is_own(file, batch.folders):
            return None
        place = (file, frame.f_lineno)
        if event in ("line", "return"):
            local = {"return": value} if event == "return" else frame.f_locals
            caller = frame.f_back
            before = last.get(frame, (caller.f_code.co_filename, caller.f_lineno))
            images = {name: _image(each) for name, each in local.items() if not isinstance(each, Coins)}
            events.append(_Event(place, place if event == "return" else before, frame.f_code.co_name, drawn[0], images))
            last[frame] = place
        return trace

    tracing = sys.gettrace()
    sys.settrace(trace)
    try:
        batch.run(counted, other=other)
    finally:
        sys.settrace(tracing)
    return events


def _parting(batch: _Batch, here: Choose, there: Choose, *, other: bool, after: int | None) -> tuple[Place]:
    """Return the line by which two runs part: that decides where to go on, or makes another value.

    `after` is how many draws values may differ before; None for which way they go alone. Where that is one way, it is
    the line that releases.
    """
    events = _traced(batch, here, other=False), _traced(batch, there, other=other)
    known: dict[tuple[str, str], Any] = {}
    for at, (one, two) in enumerate(zip(*events, strict=False)):
        if one.place != two.place:
            return (events[0][at - 1].place,)
        for name, image in one.local.items():
            is_new = known.get((one.function, name)) != (image, two.local.get(name))
            is_late = after is not None and one.draws >= after and _is_own(one.before[0], batch.folders)
            if is_late and is_new and image != two.local.get(name):
                return (one.before,)
            known[one.function, name] = image, two.local.get(name)
    return (events[0][-1].place if events[0] else (type(batch.mechanism).__module__, 0),)


def _image(value: Any) -> Any:
    """Return what can be compared of a value, to the last bit."""
    if isinstance(value, np.ndarray | np.generic):
        return value.dtype.str, np.shape(value), np.asarray(value).tobytes()
    if isinstance(value, float):
        return value.hex()
    if isinstance(value, int | str | bytes | None):
        return value
    if isinstance(value, dict):
        return [(str(key), _image(value[key])) for key in sorted(value, key=str)]
    if isinstance(value, list | tuple):
        return [_image(each) for each in value]
    if isinstance(value, Release):
        return [_image(getattr(value, each.name)) for each in fields(value)]
    return type(value).__name__
