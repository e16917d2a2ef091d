"""What real ledgers do on real stores, while much goes wrong, is what the model allows."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from random import Random

import pytest

from compliance import ledger as code
from compliance.ledger import Ledger
from compliance.ledger.accountant import Budget, Neighbours
from compliance.ledger.entries import LedgerError, Reply, Request
from compliance.ledger.head import AnySeal, Head, Seal
from compliance.ledger.place import Place, open_seal, open_store
from compliance.ledger.store import LedgerUnavailable
from fairwall.rpc.errors import Refusal
from tests.simulation.explore import request
from tests.simulation.model import Answered, Broken, Committed, Event, Halted, Refused, Sealed, State, after
from tests.simulation.recorder import RecordedSeal, RecordedStore, Recorder, check, state_of
from tests.simulation.replica import Killed
from tests.support import postgres_server

KEY = bytes(32)
DATA = ("people", "others")
REQUESTS = [request(str(number), DATA[number % 2]) for number in range(24)]
BUDGET = 9.0
"""Of each data set: for nine of its twelve requests."""


@dataclass
class Services:
    """Services that share a ledger, each of which is begun anew when it ends."""

    place: Place
    seal: AnySeal
    recorder: Recorder
    opened: dict[int, Ledger] = field(default_factory=dict)
    all: list[Ledger] = field(default_factory=list)
    samples: Iterator[int] = field(default_factory=count)

    def ask(self, who: int, asked: Request) -> None:
        """Send a request to a service until it is answered or refused."""
        while True:
            try:
                self.recorder.happened(Answered(asked, self._service(who).settle(asked, self._draw).reply.answer))
            except Killed:
                self.opened.pop(who, None)
                continue
            except LedgerUnavailable:
                continue
            except Refusal as refused:
                self.recorder.happened(Refused(asked, refused.reason))
            except LedgerError as error:
                self.recorder.happened(Halted(asked, str(error)))
            return

    def _service(self, who: int) -> Ledger:
        if who not in self.opened:
            self.opened[who] = Ledger(self.place, RecordedSeal(self.seal, self.recorder))
            self.all.append(self.opened[who])
        return self.opened[who]

    def _draw(self, _: tuple[bytes, ...]) -> Reply:
        return Reply(b"%d" % next(self.samples))


@pytest.fixture(params=["sqlite", "postgres", "postgres, heads in a table"])
def services(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Services]:
    """Services of a ledger that has its budgets, and none of which is open yet."""
    (tmp_path / "ledger").mkdir()
    is_file = request.param == "sqlite"
    place: Place = tmp_path / "ledger" / "ledger.sqlite" if is_file else postgres_server.shared().new_database()
    seal: AnySeal = Seal(tmp_path / "head", KEY)
    if request.param.endswith("table"):
        seal = open_seal(postgres_server.shared().new_database(), KEY)
    recorder = Recorder()
    ledger = Ledger(place, RecordedSeal(seal, Recorder()))
    for dataset in DATA:
        ledger.set_budget(dataset, Neighbours.A_FLIP, Budget(BUDGET))
        ledger.allocate(dataset, "ann", BUDGET)
    ledger.close()
    monkeypatch.setattr(code, "open_store", lambda where: RecordedStore(open_store(where), recorder))
    services = Services(place, seal, recorder)
    yield services
    for each in services.all:
        each.close()
    if not isinstance(seal, Seal):
        with seal._open() as db:  # type: ignore[attr-defined]
            db.close()


def run(services: Services, fail: Callable[[], None] | None = None) -> tuple[State, State]:
    """Have two services asked everything by two clients each, in orders of their own; the states before and after."""
    before, over = state_of(services.place, services.seal), threading.Event()

    def client(number: int) -> None:
        for asked in Random(number).sample(REQUESTS, len(REQUESTS)):  # noqa: S311
            services.ask(number % 2, asked)

    def failing() -> None:
        while fail is not None and not over.wait(0.05):
            fail()

    with ThreadPoolExecutor(5) as threads:
        failed, clients = threads.submit(failing), [threads.submit(client, number) for number in range(4)]
        try:
            for each in clients:
                each.result(120)
        finally:
            over.set()
        failed.result(120)
    return before, state_of(services.place, services.seal)


def test_a_run_is_one_that_the_model_allows(services: Services) -> None:
    before, then = run(services)
    state = check(before, services.recorder, then)
    assert len(state.entries()) == len(state.answers) == 2 * BUDGET
    assert sum(isinstance(event, Answered) for event in services.recorder.events) == 4 * 2 * BUDGET


@pytest.mark.few(1)
def test_a_run_in_which_much_goes_wrong_is_one_that_the_model_allows(services: Services) -> None:
    """Services end between two statements, seals fail, and a database's connections are cut, again and again."""
    services.recorder.often = 0.02
    url = services.place
    before, then = run(services, (lambda: postgres_server.end_connections(url)) if isinstance(url, str) else None)
    state = check(before, services.recorder, then)
    assert services.recorder.faults > 5
    assert len(state.entries()) == len(state.answers) == 2 * BUDGET


@pytest.mark.parametrize("services", ["sqlite"], indirect=True)
def test_a_trace_that_was_tampered_with_is_found(services: Services) -> None:
    before, then = run(services)
    events = services.recorder.events
    answer = next(place for place, event in enumerate(events) if isinstance(event, Answered))
    commit = next(place for place, event in enumerate(events) if isinstance(event, Committed))
    seal = next(place for place, event in enumerate(events) if isinstance(event, Sealed) and place > commit)
    bought = events[answer]
    assert isinstance(bought, Answered)

    def told(*those: Event) -> str:
        with pytest.raises(Broken) as broken:
            check(before, replace(services.recorder, events=list(those)), then)
        return str(broken.value)

    assert "left without its record" in told(bought, *events)
    assert "two answers" in told(*events, Answered(bought.request, b"another"))
    assert "before it was durable" in told(*events[:commit], *events[commit + 1 :])
    assert "sealed before it was durable" in told(*events[:seal], Sealed("", Head(99, b"")), *events[seal:])
    assert "nothing was lost" in told(*events, Halted(bought.request, "an old copy"))
    assert "the budget covers it" in told(Refused(bought.request, _reason(events)), *events)
    with pytest.raises(Broken, match="charged twice"):
        after(check(before, services.recorder, then), _again(events[commit], then))
    services.recorder.confirmed.add(b"gone")
    assert "are not there" in told(*events)


def _again(event: Event, then: State) -> Committed:
    """Record what was recorded already as one more record."""
    assert isinstance(event, Committed)
    (_, line) = then.lines[0]
    number = line.head.sequence + 1
    record = replace(event.record, sequence=number)
    return Committed(event.line, replace(record, chain=code.link(line.head.chain, record)))


def _reason(events: list[Event]) -> code.error_pb2.Reason:
    return next(event.reason for event in events if isinstance(event, Refused))
