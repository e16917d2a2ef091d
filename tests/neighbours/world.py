"""A deployment in this process, asked without a network: all that leaves it is kept, and compared with another's."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import pytest

import compliance.ledger
import compliance.ledger.sqlite
from compliance.deployment import telemetry
from compliance.deployment.ledger import open_ledger
from compliance.deployment.policy.loading import load_all
from compliance.deployment.policy.reading import read
from compliance.deployment.reload import RunningService, admitted, credentials_of, register
from compliance.deployment.running import Running
from compliance.deployment.serve import _accounts
from compliance.ledger.copies import sealed
from compliance.ledger.head import Seal, load_key
from compliance.ledger.writable import Writable
from fairwall.rpc import journal, server
from fairwall.rpc.identity import uri_of
from fairwall.rpc.server import Deployed
from sim.attestation import page, statement

NAME = "loans"


class _Gate(server._Gate):
    def _prompt(self, arriving: Iterator[bytes]) -> Iterator[bytes]:
        return arriving  # which lie in a list, and keep nobody waiting


@dataclass
class _Methods:
    """What services are registered with, in place of a server."""

    handlers: dict[str, Any] = field(default_factory=dict)

    def add_generic_rpc_handlers(self, _: object) -> None:
        pass

    def add_registered_method_handlers(self, service: str, methods: dict[str, Any]) -> None:
        self.handlers |= {f"/{service}/{name}": handler for name, handler in methods.items()}


class _Refused(Exception):
    pass


class _Call:
    """A call's context, as far as the service looks at it."""

    def __init__(self, caller: str) -> None:
        party, _, name = caller.partition("/")
        self._names = (uri_of(NAME, party, name).encode(),)
        self.told: tuple[Any, ...] = ()

    def auth_context(self) -> dict[str, Any]:
        return {"peer_uri": self._names}

    def time_remaining(self) -> float:
        return 60.0

    def invocation_metadata(self) -> tuple[()]:
        return ()

    def is_active(self) -> bool:
        return True

    def set_trailing_metadata(self, metadata: Any) -> None:
        self.told = metadata

    def abort(self, status: grpc.StatusCode, sentence: str) -> None:
        self.told += (status.name, sentence)
        raise _Refused


class _AtOnce(Executor):
    """Does what is to be done later at once: what a service logs then comes in one order."""

    def submit(self, function: Callable[..., Any], /, *given: Any, **named: Any) -> Future[Any]:
        done = Future[Any]()
        done.set_result(function(*given, **named))
        return done


@dataclass
class World:
    """One of two worlds.

    Attributes
    ----------
    seen : list
        All that has left the service: answers and refusals, its log and that of calls, what a collector is told, what
        its ledger holds, and the signed page.
    """

    folder: Path
    seen: list[Any] = field(default_factory=list)

    def start(self) -> None:
        """Serve the folder's policy as `compliance.deployment.serve` does, by the ledger that is there."""
        policy = read(self.folder / "policy.toml")
        place = policy.deployment
        data = load_all(policy)
        ledger = open_ledger(policy, data)
        deployed = Deployed(admitted(policy), Writable(ledger), credentials_of(policy)[1])
        self.service = RunningService(
            self.folder / "policy.toml", None, policy, ledger, Running(place.ledger), deployed, work=_AtOnce()
        )
        self.service.put_in_force(data)
        methods = _Methods()
        register(methods, policy, self.service.accounts)  # type: ignore[arg-type]
        self._gate, self._handlers = _Gate(NAME, deployed, None), methods.handlers
        for each in data:
            logging.getLogger("compliance").info("%s", each.policy.summary)

    def reload(self, text: str) -> None:
        """Have another policy read, as by SIGHUP; one that is not put in force is taken back."""
        path, before = self.service.path, self.service.path.read_text()
        path.write_text(text)
        self.service.reload(SimpleNamespace(admit=self._gate.admit, show=lambda _: None))  # type: ignore[arg-type]
        self.seen.append(("in force", self.service.policy.digest))
        if self.service.policy.digest != hashlib.sha256(text.encode()).digest():
            path.write_text(before)

    def restart(self) -> None:
        """End the service, and start it again with its ledger."""
        self.stop()
        self.start()

    def stop(self) -> None:
        """End the service, and let go of what its process would have held to its end."""
        self.service.ledger.close()
        if (descriptor := self.service.running._descriptor) is not None:
            os.close(descriptor)

    def call(self, caller: str, method: str, *messages: Any) -> list[bytes]:
        """Call a method with messages, or with bytes that are none; what the caller gets is kept."""
        path = next((path for path in self._handlers if path.endswith(f"/{method}")), "")
        details: Any = SimpleNamespace(method=path)
        behaviour = self._gate.intercept_service(lambda _: self._handlers.get(path), details)
        context = _Call(caller)
        arriving = iter([each if isinstance(each, bytes) else each.SerializeToString() for each in messages])
        got: list[bytes] = []
        if behaviour is not None:
            with contextlib.suppress(_Refused):
                if behaviour.response_streaming:
                    got.extend(behaviour.stream_stream(arriving, context))
                else:
                    got.append(behaviour.stream_unary(arriving, context))
        self.seen.append((caller, method, *got, *context.told))
        return got

    def look(self, *, draws: bool) -> None:
        """Look at what is published beside the calls: what the ledger holds, and the signed page (drawn, or stated)."""
        place = self.service.policy.deployment
        found = sealed(place.ledger, Seal(place.seal, load_key(place.credentials / "seal.key")))
        account = statement.account_of(found, place.name, datetime.fromtimestamp(0, UTC), {})
        told = page.render(account) if draws else b""
        self.seen += [*found[0].records, told, statement.statement_of(account, {"page.html": told})]


class _Kept(logging.Handler):
    """Keeps every line of the service's logs."""

    def __init__(self, seen: list[Any]) -> None:
        super().__init__()
        self._seen = seen

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info and repr(record.exc_info[1])
        self._seen.append((record.name, record.levelname, record.getMessage(), getattr(record, "call", None), error))


@contextmanager
def logged(seen: list[Any]) -> Iterator[None]:
    """Keep what the service's logs get, down to the least level."""
    kept, loggers = _Kept(seen), [logging.getLogger(name) for name in ("compliance", "fairwall")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.addHandler(kept)
        logger.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.removeHandler(kept)
            logger.setLevel(level)


@dataclass
class _Collector:
    """Stands for what makes metrics and traces, and for each of them: is told of calls, and where to look for more."""

    seen: list[Any]
    looks: dict[str, Sequence[Callable[[Any], Iterable[Any]]]] = field(default_factory=dict)

    def get_meter(self, *_: str) -> _Collector:
        return self

    get_tracer = create_histogram = get_meter

    def create_observable_gauge(self, name: str, looks: Sequence[Callable[[Any], Iterable[Any]]], *_: str) -> None:
        self.looks[name] = looks

    def record(self, _: float, attributes: dict[str, Any]) -> None:
        self.seen.append(("call", attributes))

    def start_span(self, name: str, *, attributes: dict[str, Any], **_: int) -> SimpleNamespace:
        self.seen.append(("span", name, attributes))
        return SimpleNamespace(end=lambda _: None)


@contextmanager
def collected(world: World) -> Iterator[None]:
    """Keep what a collector is told of calls, and at the end of budgets, in place of sending it there."""
    collector: Any = _Collector(world.seen)
    calls = telemetry._Calls(collector, collector)
    journal.LOG.addHandler(calls)
    try:
        yield
    finally:
        journal.LOG.removeHandler(calls)
    telemetry._observe(collector, world.service.ledger, lambda: _accounts(world.service.policy), lambda: True)
    for name, (look,) in collector.looks.items():
        told = [(point.attributes, 0.0 if name == "fairwall.ledger.write" else point.value) for point in look(None)]
        world.seen.append((name, told))  # but for how long it took to write


@contextmanager
def at_no_time() -> Iterator[None]:
    """Let the ledger's clock count its looks, and a new ledger begin with no random bytes."""
    ticks = itertools.count(1.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compliance.ledger, "time", SimpleNamespace(time=lambda: next(ticks)))
        patch.setattr(compliance.ledger.sqlite, "secrets", SimpleNamespace(token_bytes=bytes))
        yield
