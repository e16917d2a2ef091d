"""`AsyncAuditClient`: `fairwall.client.AuditClient` for asyncio, with the same answers.

Calls run in the client's own threads. gRPC's asyncio interface needs none, but loses the reason of a refusal that comes
while predictions are still sent (https://github.com/grpc/grpc/issues/36066).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial, wraps
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from fairwall.client.audit_client import AuditClient

__tracebackhide__ = True
"""Hides frames from pytest, which would print arguments: rows about people."""

_CALLS = 8
"""Calls that a service takes of one caller at a time: further calls wait here, and are not refused there."""

_P = ParamSpec("_P")
_T = TypeVar("_T")


def _in_thread(
    method: Callable[Concatenate[AuditClient, _P], _T],
) -> Callable[Concatenate[AsyncAuditClient, _P], Coroutine[Any, Any, _T]]:
    @wraps(method)
    async def ask(self: AsyncAuditClient, /, *arguments: _P.args, **named: _P.kwargs) -> _T:
        call = partial(method, self._audits, *arguments, **named)
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)

    return ask


class AsyncAuditClient:
    """A client of a compliance service that lets the event loop run while it waits.

    Every method of `AuditClient` that asks is here, with its parameters, answers and errors. A call whose task is
    cancelled goes on, and is charged: the same request under the same id gets its answer. The constructor's parameters
    and errors are those of `AuditClient` too.
    """

    def __init__(self, address: str | Sequence[str], credentials: str | Path, *, data: str | None = None) -> None:
        self._audits = AuditClient(address, credentials, data=data)
        self._threads = ThreadPoolExecutor(_CALLS)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection; calls under way end as `AuditUnavailable`."""
        self._audits.close()
        await asyncio.to_thread(self._threads.shutdown, cancel_futures=True)

    ask = _in_thread(AuditClient.ask)
    ask_table = _in_thread(AuditClient.ask_table)
    commit = _in_thread(AuditClient.commit)
    ask_sealed = _in_thread(AuditClient.ask_sealed)
    search = _in_thread(AuditClient.search)
    terms = _in_thread(AuditClient.terms)
    expected_error = _in_thread(AuditClient.expected_error)
    group_terms = _in_thread(AuditClient.group_terms)
    by_group = _in_thread(AuditClient.by_group)
    count_by_group = _in_thread(AuditClient.count_by_group)
    by_quantile = _in_thread(AuditClient.by_quantile)
    by_segment = _in_thread(AuditClient.by_segment)
    standardised_difference = _in_thread(AuditClient.standardised_difference)
    release_terms = _in_thread(AuditClient.release_terms)
    release = _in_thread(AuditClient.release)
