"""`AsyncAuditClient`: `fairwall.client.AuditClient` for asyncio, with the same answers.

It asks in threads of its own. gRPC's asyncio interface would do without, but loses why a call was refused where the
refusal comes while predictions are still sent (https://github.com/grpc/grpc/issues/36066).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from numpy.typing import ArrayLike

from fairwall.client.audit_client import AuditClient
from fairwall.client.by_group import ByGroup
from fairwall.client.gaps import Answer, Terms

__tracebackhide__ = True
"""pytest shows the arguments of what failed, and these are rows about people."""

_CALLS = 8
"""As many as a service takes of one caller at a time: what is beyond them waits here, and is not refused there."""

_T = TypeVar("_T")


class AsyncAuditClient:
    """Asks a deployment's compliance service about models, while the event loop does other things.

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

    async def ask(self, predictions: ArrayLike, metric: str, epsilon: float, **asked: Any) -> Answer:
        """Ask for one metric of one model, or of a batch of models; all is as in `AuditClient.ask`, also by keyword.

        A call whose task is cancelled goes on, and is charged: the same request under the same id finds its answer.
        """
        return await self._in_thread(partial(self._audits.ask, predictions, metric, epsilon, **asked))

    async def count_by_group(
        self, predictions: ArrayLike, by: str | Sequence[str], epsilon: float, **asked: Any
    ) -> ByGroup:
        """Buy counts by group; all is as in `AuditClient.count_by_group`, also by keyword."""
        return await self._in_thread(partial(self._audits.count_by_group, predictions, by, epsilon, **asked))

    async def terms(self) -> Terms:
        """Ask what may be asked, and what is left of the budget, as `AuditClient.terms` does. Costs nothing."""
        return await self._in_thread(self._audits.terms)

    async def _in_thread(self, call: Callable[[], _T]) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)
