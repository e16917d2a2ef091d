"""`AsyncAuditClient`: `fairwall.client.AuditClient` for asyncio, with the same answers.

It asks in threads of its own. gRPC's asyncio interface would do without, but loses why a call was refused where the
refusal comes while predictions are still sent (https://github.com/grpc/grpc/issues/36066).
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
"""pytest shows the arguments of what failed, and these are rows about people."""

_CALLS = 8
"""As many as a service takes of one caller at a time: what is beyond them waits here, and is not refused there."""

_P = ParamSpec("_P")
_T = TypeVar("_T")


def _in_thread(
    method: Callable[Concatenate[AuditClient, _P], _T],
) -> Callable[Concatenate[AsyncAuditClient, _P], Coroutine[Any, Any, _T]]:
    @wraps(method)
    async def ask(self: AsyncAuditClient, /, *asked: _P.args, **named: _P.kwargs) -> _T:
        call = partial(method, self._audits, *asked, **named)
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)

    return ask


class AsyncAuditClient:
    """Asks a deployment's compliance service about models, while the event loop does other things.

    Every method of `AuditClient` that asks is here, with its parameters, answers and errors. A call whose task is
    cancelled goes on, and is charged: the same request under the same id finds its answer.

    Parameters
    ----------
    address, credentials, data : str or sequence of str, str or Path, str or None
        As `AuditClient`'s.

    Raises
    ------
    fairwall.rpc.identity.CredentialsError
        If the folder does not hold credentials that can be used.
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
        """Hang up; calls that are under way end as `AuditUnavailable`."""
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
