"""A grey-box privacy test: run a mechanism on two neighbours with the same noise, and compare the runs call by call.

The idea is that of Re:cord-play (arXiv 2602.17454). A mechanism answers about one data set, and all noise outputs are
recorded. It then answers about a neighbour and gets the same noisy numbers. A sound mechanism has

* **the same draws**, in order, shape and grid: otherwise what is drawn depends on the secret;
* **the same release**, to the last bit: answers, facts, intervals and joint draws are made of noisy and public numbers;
* **draws that cost no more than is charged**: the likelihood ratio of the same numbers follows from the values and
  scales passed to each call (`recorded.costs`), and adds up.

A repeat on the first data set must give the same run, otherwise something was drawn outside the given noise. A
mechanism that claims epsilon alone must pass for every noise output, so numbers are not only drawn, but also put near
the gaps and far off. A mechanism that claims a delta too may fail on draws of at most that probability, so its numbers
are only drawn.

By composition a draw costs its loss, used or not. Three proofs give less, and are tried before a mechanism is accused:
permute and flip (`recorded`); a draw that no release depends on costs nothing (propose-test-release); and in choices
where a threshold and every chosen candidate are raised together, and all other noise stays, only these cost (sparse
vector, noisy largest).

A different release is no fault if the neighbour reaches the same release by other coins of that one person, with a
probability ratio within the claim (`_other_ways`), as in Warner's randomised response in any form. If it reaches the
release in another way, or if not all ways can be tried, the fault is not proven, and accuses nobody.
"""

from __future__ import annotations

import inspect
import itertools
import linecache
import math
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from compliance.ledger.accountant import FREE, Loss
from compliance.mechanisms import mechanism as mechanism_module
from compliance.mechanisms import row_defaults
from compliance.mechanisms.mechanism import NO_FACTS, Facts, Mechanism, MechanismAnswer, Reusable
from compliance.noise.sampling import Seeded
from fairwall.arrays import Floats
from sim.privacy_audit import recorded, subject
from sim.privacy_audit.pairs import NeighbourPair
from sim.privacy_audit.recorded import NUMBERS, Choose, Coins, NoiseCall, NoiseRecorder, Place, costs, replayed, steered

ABOUT = {
    "branch": "what is drawn depends on the secret",
    "grid": "the grid or the shape of noise depends on the secret",
    "scale": "the scale of noise depends on the secret, and is not paid for",
    "sensitivity": "values move further than their noise pays for",
    "output": "what is released depends on more of the secret than noisy numbers",
    "randomness": "something is drawn beside the noise that is given",
}
"""Kinds of faults, each with a description."""

_ROUNDING = 1e-7
"""Relative tolerance for costs above the claim: both are computed in float64."""

_SESSIONS = ((1.0, 1.0), (1.0, 2.0), (1.0,))
"""Epsilon factors of each session's batches; noise is drawn in the first session, put near gaps in the second, and far
off in the third."""

_DRAWS = 3


@dataclass(frozen=True)
class NoiseFault:
    """A fault: its kind (a key of `ABOUT`), its line, and the first neighbours that showed it.

    `places` is the line and, for a call of the noise, the lines that led there. `batch` counts the session's batches
    from 1. `cost` is the cost of the batch's draws if it is too high, else None. A fault that is not `proven` accuses
    nobody.
    """

    kind: str
    places: tuple[Place, ...]
    pair: str
    batch: int
    cost: float | None
    proven: bool = True

    @property
    def source(self) -> str:
        """Source text of the line."""
        return linecache.getline(*self.places[0]).strip()


@dataclass(frozen=True, eq=False)
class _Run:
    """One run of a batch: its release or exception, the bits of that, and the calls of the noise."""

    release: MechanismAnswer | Exception
    image: Any
    calls: list[NoiseCall]

    def is_repeated_by(self, other: _Run) -> bool:
        """Return whether another run is identical."""
        asked = ([(call.kind, call.public, call.scale, call.values) for call in run.calls] for run in (self, other))
        return bool(self.image == other.image) and _image(next(asked)) == _image(next(asked))


@dataclass(frozen=True, eq=False)
class _Batch:
    """A batch put to a mechanism about one of two neighbours, with the facts bought before."""

    mechanism: Mechanism
    pair: NeighbourPair
    facts: Facts
    epsilon: float
    delta: float
    draw: int
    number: int

    def run(self, choose: Choose, *, other: bool = False) -> _Run:
        question = self.pair.second if other else self.pair.first
        recorder = NoiseRecorder(Seeded(np.random.default_rng(self.draw)), choose)
        try:
            release = self.mechanism.release(question, self.facts, self.epsilon, self.delta, recorder)
            joint = release.joint and release.joint(_DRAWS, np.random.default_rng(0))
            image = _image([release.values, dict(release.facts), release.low, release.high, release.likely, joint])
        except Exception as error:
            return _Run(error, [type(error).__name__, str(error)], recorder.calls)
        return _Run(release, image, recorder.calls)

    def begin(self) -> Choose:
        """Return the first run's noise: drawn if a delta is claimed, because a rare draw may break the claim then."""
        if self.draw == 0 or self.delta:
            return lambda _, __: None
        middle = (self.pair.first.gaps() + self.pair.second.gaps()) / 2
        return steered(np.nan_to_num(middle, posinf=0.0, neginf=0.0), far=self.draw > 1)

    def charged(self) -> Loss:
        if isinstance(self.mechanism, Reusable) and self.mechanism.is_free(self.facts, self.epsilon, self.pair.first):
            return FREE
        return self.mechanism.cost(self.epsilon, self.delta)

    def fault(self, kind: str, places: tuple[Place, ...], cost: float | None = None) -> NoiseFault:
        return NoiseFault(kind, places, self.pair.about, self.number, cost)


def faults(
    mechanism: Mechanism, pairs: Iterable[NeighbourPair], epsilon: float, delta: float
) -> tuple[NoiseFault, ...]:
    """Return a mechanism's faults: one for each kind and line, with the first neighbours that show it.

    No fault proves nothing about neighbours that are not in `pairs`. `epsilon` and `delta` are those of each session's
    first batch.
    """
    found: dict[tuple[str, Place], NoiseFault] = {}
    for pair, (draw, factors) in itertools.product(pairs, enumerate(_SESSIONS)):
        facts = NO_FACTS
        for number, factor in enumerate(factors, start=1):
            if mechanism.refuses(pair.first.metric, factor * epsilon, delta) is not None:
                break
            batch = _Batch(mechanism, pair, facts, factor * epsilon, delta, draw, number)
            first = batch.run(batch.begin())
            fault = _compared(batch, first)
            if fault is not None:
                found.setdefault((fault.kind, fault.places[0]), fault)
                break
            if isinstance(first.release, Exception):
                if draw == 0:
                    raise first.release
                break
            facts = {**facts, **first.release.facts}
    return tuple(found.values())


def _compared(batch: _Batch, first: _Run) -> NoiseFault | None:
    """Return the first fault of a batch, or None."""
    tape, own = replayed(first.calls), _folders(batch.mechanism)
    if batch.draw == 0 and batch.number == 1 and not first.is_repeated_by(batch.run(batch.begin())):
        return batch.fault("randomness", _parting(batch, own, batch.begin(), other=False, after=0))
    second = batch.run(tape, other=True)
    for one, two in itertools.zip_longest(first.calls, second.calls):
        if one is None or two is None or not one.is_alike(two):
            if one and two and (one.kind, one.site) == (two.kind, two.site):
                return batch.fault("grid", _callers(one, own))
            return batch.fault("branch", _parting(batch, own, tape))
    if first.image != second.image:
        way = _other_ways(batch, first, second)
        if way is not None and way <= batch.charged().epsilon * (1 + _ROUNDING):
            return None
        hidden = sum(not call.is_rounding for call in first.calls)
        found = batch.fault("output", _parting(batch, own, tape, after=hidden or None))
        return replace(found, proven=way is None)
    charged = batch.charged()
    most, spent = charged.epsilon * (1 + _ROUNDING), costs(first.calls, second.calls, charged.delta)
    least = float(spent.sum())
    if least > most:
        least = min(least, *_by_other_proofs(batch, first, second, spent, charged.delta))
    if least <= most:
        return None
    scaled = [call.scale != other.scale for call, other in zip(first.calls, second.calls, strict=True)]
    worst = int(np.argmax(scaled if any(scaled) else spent))
    return batch.fault("scale" if any(scaled) else "sensitivity", _callers(first.calls[worst], own), least)


def _by_other_proofs(batch: _Batch, first: _Run, second: _Run, spent: Floats, delta: float) -> Iterator[float]:
    """Yield the cost of the draws by each other proof that the module names."""
    yield sum(float(cost) for at, cost in enumerate(spent) if cost and not _is_unread(batch, first, at))
    assert isinstance(first.release, MechanismAnswer)
    told = np.asarray(first.release.values)
    apart = [
        float(np.abs(one.values - two.values).max())
        for one, two in zip(first.calls, second.calls, strict=True)
        if one.kind == "laplace" and one.values.shape == told.shape
    ]
    if not any(apart) or not np.isin(told[~np.isnan(told)], (0, 1)).all():
        return
    for sign in (1, -1):

        def raised(at: int, call: NoiseCall, sign: int = sign) -> NDArray[Any] | None:
            before = first.calls[at]
            if call.kind != "laplace" or not before.is_alike(call):
                return before.output
            step = call.public[1]
            up = before.output + sign * (math.ceil(max(apart) / step) + 1) * step
            if call.values.shape != told.shape:
                return up if np.array_equal(call.values, before.values) else before.output
            kept = before.output + (np.rint(call.values / step) - np.rint(before.values / step)) * step
            return np.asarray(np.where(told == 1, up, kept))

        again = batch.run(raised, other=True)
        if again.image == first.image and len(again.calls) == len(first.calls):
            yield float(costs(first.calls, again.calls, delta).sum())


def _other_ways(batch: _Batch, first: _Run, second: _Run) -> float | None:
    """Return an upper bound on the loss if the neighbour reaches the same release by other noise, or None if it cannot.

    All coins of one person are tried, with everybody else's unchanged: the loss is exact then. Infinite means unknown:
    not all draws can be tried, or moved noise gives the same release only up to rounding.
    """
    coins = dict[int, list[int]]()
    for at, call in enumerate(first.calls):
        if call.kind == "permutation" or (call.kind == "integers" and call.public[1] > _SIDES):
            return math.inf
        if call.kind in ("bernoulli", "bernoulli_exp", "integers"):
            coins.setdefault(call.output.size, []).append(at)
    for size, calls in coins.items():
        sides = [range(first.calls[at].public[1] if first.calls[at].kind == "integers" else 2) for at in calls]
        if size > _SIDES_TRIED or math.prod(map(len, sides)) > _SIDES_TRIED or len(coins) > 1:
            return math.inf
        losses = [_loss_of_one(batch, first, calls, person, list(itertools.product(*sides))) for person in range(size)]
        if any(loss is not None for loss in losses):
            return min(loss for loss in losses if loss is not None)
    if not isinstance(first.release, MechanismAnswer) or not isinstance(second.release, MechanismAnswer):
        return None
    apart = np.asarray(first.release.values) - np.asarray(second.release.values)
    for call, other in zip(first.calls, second.calls, strict=True):
        about = call.output.shape == apart.shape and np.array_equal(call.values, other.values)  # e.g. noise about 0
        if about and apart.any() and call.kind in NUMBERS and not call.is_rounding:
            moved = [replace(one, output=one.output + apart) if one is call else one for one in first.calls]
            again = batch.run(replayed(moved), other=True)
            if isinstance(again.release, MechanismAnswer) and np.allclose(again.release.values, first.release.values):
                return math.inf
    return None


_SIDES, _SIDES_TRIED = 4, 64


def _loss_of_one(
    batch: _Batch, first: _Run, calls: list[int], person: int, ways: list[tuple[int, ...]]
) -> float | None:
    """Return the loss of the release by one person's coins alone, or None if the neighbour never gives it."""
    told: tuple[dict[str, float], dict[str, float]] = {}, {}
    for way, (other, chances) in itertools.product(ways, enumerate(told)):
        sides = dict(zip(calls, way, strict=True))

        def choose(at: int, call: NoiseCall, sides: dict[int, int] = sides) -> NDArray[Any] | None:
            output = replayed(first.calls)(at, call)
            if output is not None and at in sides:
                output = output.copy()
                output.reshape(-1)[person] = sides[at]
            return output

        run = batch.run(choose, other=bool(other))
        if len(run.calls) != len(first.calls):
            return math.inf
        image = repr(run.image)
        chances[image] = chances.get(image, 0.0) + math.prod(
            _chance(run.calls[at], person, side) for at, side in sides.items()
        )
    if repr(first.image) not in told[1]:
        return None
    either = [(told[0].get(image, 0.0), told[1].get(image, 0.0)) for image in {**told[0], **told[1]}]
    return max(abs(math.log(one / two)) if one and two else math.inf for one, two in either if one or two)


def _chance(call: NoiseCall, place: int, side: int) -> float:
    if call.kind == "integers":
        return 1 / float(call.public[1])
    heads = call.scale if call.kind == "bernoulli" else math.exp(-call.values.reshape(-1)[place])
    return heads if side else 1 - heads


def _is_unread(batch: _Batch, first: _Run, at: int) -> bool:
    """Return whether neither the release nor a later draw depends on a draw."""
    read, tape = first.calls[at], replayed(first.calls)
    if read.kind not in NUMBERS:
        return False
    away = np.full(read.output.shape, np.rint(1e3 * read.scale / read.public[1]) * read.public[1])

    def changed(to: Floats) -> Choose:
        return lambda number, call: to if number == at else tape(number, call)

    return all(first.is_repeated_by(batch.run(changed(to))) for to in (away, -away))


# ---- the line of a fault


def _folders(mechanism: Mechanism) -> frozenset[Path]:
    """Return the folders of a mechanism's own code: of its function, or of its class and base classes."""
    own: Any = getattr(mechanism, "function", mechanism)
    of_class = [each for kind in type(own).__mro__ for each in vars(kind).values()]
    functions = [each for each in ([own] if inspect.isfunction(own) else of_class) if inspect.isfunction(each)]
    files = {each.__code__.co_filename for each in functions} - {"<string>"}
    return frozenset(Path(file).resolve().parent for file in files) - {Path(inspect.__file__).resolve().parent}


@cache
def _is_own(file: str, folders: frozenset[Path]) -> bool:
    path = Path(file).resolve()
    return path.parent in folders and path not in _AROUND


_AROUND = {Path(str(each.__file__)).resolve() for each in (mechanism_module, row_defaults, recorded, subject)} | {
    Path(__file__)
}
"""Files of the code around a mechanism's own."""


def _callers(call: NoiseCall, folders: frozenset[Path]) -> tuple[Place, ...]:
    """Return the lines that called the noise: those in the mechanism's own code, or else the innermost one."""
    return tuple(place for place in call.site if _is_own(place[0], folders)) or call.site[:1]


class _Event(NamedTuple):
    """A line about to run, or the last return, with its function, the line before, and the number of draws so far."""

    place: Place
    before: Place
    function: str
    draws: int
    local: dict[str, Any]


def _traced(batch: _Batch, folders: frozenset[Path], choose: Choose, *, other: bool) -> list[_Event]:
    """Run a batch; return each line of the mechanism's own code, with the values of its variables."""
    events, last, drawn = list[_Event](), dict[Any, Place](), list[int]()

    def trace(frame: Any, event: str, value: Any) -> Any:
        place = (frame.f_code.co_filename, frame.f_lineno)
        if not _is_own(place[0], folders):
            return None
        if event == "line" or (event == "return" and not _is_own(frame.f_back.f_code.co_filename, folders)):
            before = place if event == "return" else last.get(frame, ("", 0))
            local = {"return": value} if event == "return" else frame.f_locals
            images = {name: _image(each) for name, each in local.items() if not isinstance(each, Coins)}
            events.append(_Event(place, before, frame.f_code.co_name, len(drawn), images))
            last[frame] = place
        return trace

    def counted(at: int, call: NoiseCall) -> NDArray[Any] | None:
        drawn.append(at)
        return choose(at, call)

    tracing = sys.gettrace()
    sys.settrace(trace)
    try:
        batch.run(counted, other=other)
    finally:
        sys.settrace(tracing)
    return events


def _parting(
    batch: _Batch, folders: frozenset[Path], there: Choose, *, other: bool = True, after: int | None = None
) -> tuple[Place]:
    """Return the line where two runs diverge in path or, once they have made `after` draws, in a variable's value.

    With the same path and values it is the last line, which releases.
    """
    events = _traced(batch, folders, batch.begin(), other=False), _traced(batch, folders, there, other=other)
    known: dict[tuple[str, str], Any] = {}
    for at, (one, two) in enumerate(zip(*events, strict=False)):
        if one.place != two.place:
            return (events[0][at - 1].place,)
        for name, image in one.local.items():
            both = image, two.local.get(name)
            is_new = known.get((one.function, name)) != both and both[0] != both[1]
            if after is not None and one.draws >= after and is_new and _is_own(one.before[0], folders):
                return (one.before,)
            known[one.function, name] = both
    return (events[0][-1].place if events[0] else (type(batch.mechanism).__module__, 0),)


def _image(value: Any) -> Any:
    """Return a comparable form of a value, exact to the last bit."""
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
    return _image(list(vars(value).values())) if isinstance(value, MechanismAnswer) else type(value).__name__
