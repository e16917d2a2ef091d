"""A check whether a ledger can be written, for the service's health."""

from __future__ import annotations

import logging
import threading
import time

from compliance.ledger import Ledger
from compliance.ledger.entries import LedgerError
from compliance.ledger.store import LedgerUnavailable

LOG = logging.getLogger(__name__)

_SECONDS = 1.0
"""Seconds for which a result is reused: frequent health checks do not cause as many writes."""


class Writable:
    """A callable that tries to write the ledger, and returns whether it could."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._lock = threading.Lock()
        self._until = 0.0
        self._is_writable = True

    def __call__(self) -> bool:
        """Return whether the ledger can be written."""
        with self._lock:
            if time.monotonic() >= self._until:
                self._is_writable = self._try()
                self._until = time.monotonic() + _SECONDS
            return self._is_writable

    def _try(self) -> bool:
        try:
            self._ledger.check()
        except (LedgerUnavailable, LedgerError) as error:
            if self._is_writable:
                LOG.error("not ready: %s", error)
            return False
        if not self._is_writable:
            LOG.info("ready again")
        return True
