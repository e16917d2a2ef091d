"""Every order in which replicas take their steps, and every fault at every step, each state once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from compliance.ledger import Ledger
from compliance.ledger.accountant import Budget, Neighbours, pure
from compliance.ledger.entries import Request
from tests.simulation.model import Broken, Line, State
from tests.simulation.replica import Client, Process, Replicas, ask, simulated
from tests.simulation.world import UNSEALED, Faults, Op, Rules, World, crash, cut, fail_over, sealed, step

COST = 1.0
"""Of each request."""


def request(request_id: str, dataset: str = "people", developer: str = "ann") -> Request:
    digest = f"{request_id} {dataset}".encode()
    return Request(dataset, developer, request_id, digest, "sp", "laplace", Neighbours.A_FLIP, pure(COST))


@dataclass(frozen=True)
class Case:
    """What is explored.

    Parameters
    ----------
    requests : sequence of sequences of Request
        What each replica is asked, in order.
    budget : float
        Of each data set; it covers two requests unless it says more.
    ledger : type of Ledger
        A twin of it may be broken; so may the client that uses it, and the `rules` of what it stands on.
    patches : dict of str to object
        What stands in the place of functions of its module.
    """

    requests: Sequence[Sequence[Request]]
    faults: Faults = field(default_factory=Faults)
    rules: Rules = field(default_factory=Rules)
    ledger: type[Ledger] = Ledger
    client: Client = ask
    budget: float = 2 * COST
    patches: Mapping[str, object] = field(default_factory=dict)


@dataclass
class Found:
    """What came of it.

    Parameters
    ----------
    states, steps : int
        Those that differ, and the ways from one to the next.
    schedules : int
        How many ways there are from the start to an end.
    ends, halted : int
        States in which all have heard what comes of their requests; of these, those in which a data set is answered no
        more, since the copy in use lacks what was sealed.
    runs : int
        How often a replica was run from its start.
    fault : str
        What the protocol forbids and has happened; empty if nothing.
    path : tuple of str
        How it came to that.
    """

    states: int = 0
    steps: int = 0
    schedules: int = 0
    ends: int = 0
    halted: int = 0
    runs: int = 0
    fault: str = ""
    path: tuple[str, ...] = field(default=(), repr=False)


class _Node(NamedTuple):
    world: World
    at: tuple[int, ...]


_Way = tuple[str, _Node]


def explore(case: Case) -> Found:
    """Walk through all that can happen, depth first; stop at what the protocol forbids."""
    found = Found()
    replicas = Replicas(case.ledger, case.client, case.requests, case.rules.one_line)
    with simulated(case.patches):
        try:
            _walk(_start(case, replicas), replicas, found)
        finally:
            found.runs = replicas.runs
            replicas.close()
    return found


def _walk(start: _Node, replicas: Replicas, found: Found) -> None:
    ways: dict[int, int] = {}  # from each state to an end
    path: list[str] = []
    said = [""]
    stack = [(hash(start), _ways(start, replicas, said), [0])]
    on_path = {stack[0][0]}
    while stack:
        key, onwards, counted = stack[-1]
        try:
            way = next(onwards, None)
        except Broken as broken:
            found.fault, found.path = str(broken), (*path, said[0])
            break
        if way is None:
            stack.pop()
            on_path.discard(key)
            ways[key] = counted[0]
            if stack:
                stack[-1][2][0] += counted[0]
                path.pop()
            continue
        found.steps += 1
        name, node = way
        number = hash(node)
        if number in ways:
            counted[0] += ways[number]
            continue
        assert number not in on_path, "every step leads on"
        path.append(name)
        if all(replicas.points[each].op.kind == "done" for each in node.at):
            found.ends += 1
            found.halted += any(line.is_old for _, line in node.world.state.lines)
            ways[number] = 1
            counted[0] += 1
            path.pop()
            continue
        on_path.add(number)
        stack.append((number, _ways(node, replicas, said), [0]))
    found.states = len(ways) + len(on_path)
    found.schedules = ways.get(hash(start), 0)


def _start(case: Case, replicas: Replicas) -> _Node:
    """Set the budgets, and open the replicas, one after another: that is not explored."""
    datasets = sorted({each.dataset for requests in case.requests for each in requests})
    developers = sorted({each.developer for requests in case.requests for each in requests})

    def set_up(process: Process) -> None:
        ledger = process.open()
        for dataset in datasets:
            ledger.set_budget(dataset, Neighbours.A_FLIP, Budget(case.budget))
            for developer in developers:
                ledger.allocate(dataset, developer, case.budget)

    count = len(case.requests)
    lines = (("", Line(bytes(32))),) if case.rules.one_line else ()
    world = World(State(lines), (None,) * count, (False,) * count, Faults(), (False,) * count)
    first = Process(Ledger, set_up, case.rules.one_line)
    op = first.go_on()
    while op.kind != "done":
        world, heard = _went(world, 0, op)
        op = first.go_on(heard)
    at = []
    for who in range(count):
        number = replicas.started(who)
        while not replicas.is_ready(number):
            world, heard = _went(world, who, replicas.points[number].op)
            number = replicas.after(number, heard)
        at.append(number)
    return _Node(replace(world, commits=(), faults=case.faults, rules=case.rules), tuple(at))


def _went(world: World, who: int, op: Op) -> tuple[World, Any]:
    went = step(world, who, op)
    assert went is not None, "nobody else is there"
    return went


def _ways(node: _Node, replicas: Replicas, said: list[str]) -> Iterator[_Way]:
    """All that can happen next; what is being tried is said, in case that it must not happen."""
    world, at = node
    points = [replicas.points[number] for number in at]
    ops = tuple(point.op for point in points)
    moved = False

    def put(who: int, number: int) -> tuple[int, ...]:
        return (*at[:who], number, *at[who + 1 :])

    for who, op in enumerate(ops):
        if op.kind == "done":
            continue
        said[0] = _told(who, op)
        went = step(world, who, op)
        if went is not None:
            moved = True
            yield said[0], _Node(went[0], put(who, replicas.after(at[who], went[1])))
    if not moved:
        raise Broken("all wait for one another")
    faults = world.faults
    for who, (point, op) in enumerate(zip(points, ops, strict=True)):
        if op.kind == "done":
            continue
        if faults.crashes:
            said[0] = f"{who}: CRASH"
            yield said[0], _Node(crash(world, who), put(who, replicas.started(who, point.index, point.drawn)))
        if faults.cuts and (world.sessions[who] or op.kind in ("begin", "confirmed") or _has_turn(world, who)):
            said[0] = f"{who}: CUT OFF"
            yield said[0], _Node(cut(world, who, op), at)
        if faults.unsealed and op.kind == "seal write":
            left = replace(world, faults=replace(faults, unsealed=faults.unsealed - 1))
            unsealed = put(who, replicas.after(at[who], UNSEALED))
            said[0] = f"{who}: NOT SEALED"
            yield said[0], _Node(left, unsealed)
            said[0] = f"{who}: SEALED, AND SAID TO HAVE FAILED"
            yield said[0], _Node(sealed(left, op)[0], unsealed)
    for lag in range(min(faults.lag, len(world.commits)) + 1):
        if faults.failovers:
            said[0] = f"FAILOVER, {lag} behind"
            yield said[0], _Node(fail_over(world, lag, ops), at)
        if faults.splits:
            for strays in ((True, False), (False, True), (True, True)):
                said[0] = (
                    f"FAILOVER, {lag} behind, WITHOUT {[who for who, strays_on in enumerate(strays) if strays_on]}"
                )
                yield said[0], _Node(fail_over(world, lag, ops, strays), at)


def _has_turn(world: World, who: int) -> bool:
    return any(whose == who for _, whose in world.turns)


def _told(who: int, op: Op) -> str:
    value = op.value
    if op.kind in ("reply", "refused", "halted"):
        value = f"{value[0].request_id} {value[1]}"
    elif op.kind in ("append", "seal write"):
        value = value.sequence
    return f"{who}: {op.kind} {op.line or ''} {'' if value is None else value}".rstrip()
