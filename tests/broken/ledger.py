"""Servers that write, seal or recover their ledger wrongly."""

import os
import sqlite3
import threading
import time
from contextlib import contextmanager
from dataclasses import replace

from compliance import ledger
from compliance.answers import audit_service
from compliance.deployment import serve
from compliance.ledger import Ledger, head, sqlite
from compliance.ledger.entries import LedgerEntry
from compliance.ledger.store import LedgerUnavailable
from compliance.ledger.writable import Writable
from fairwall.rpc.errors import Refusal
from fairwall.wire.v1 import error_pb2
from tests.broken import broken


def writes_later(seconds):
    """Let a charge be written so many seconds after its answer."""
    sound = Ledger.settle

    def settle(self, request, answer, *how, **room):
        with self._held(request.dataset) as held:
            entry, books = self._find(held, request), held.books
            if entry is None and books.affords(request):
                remaining = books.remaining_after(request)
                entry = LedgerEntry(books.head.sequence + 1, request, answer(()), remaining, time.time(), b"")
                threading.Timer(seconds, sound, (self, request, lambda _: entry.reply)).start()
        return entry or sound(self, request, answer, *how, **room)

    Ledger.settle = settle


@broken("C308", "Writes its ledger when it is ended, and loses it when it is killed.")
def writes_the_ledger_on_exit():
    leave = os._exit

    def ledger_of(*given, sound=serve.open_ledger, **named):
        opened = sound(*given, **named)
        memory = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        disk, opened._store.db = opened._store.db, memory
        disk.backup(memory)
        os._exit = lambda status: (memory.backup(disk), leave(status))
        return opened

    head.Seal.read = lambda _: None
    ledger._check_seal = lambda *_: None
    serve.open_ledger = ledger_of


@broken("C737", "Answers, and writes the charge down twenty milliseconds later.")
def writes_a_moment_later():
    writes_later(0.02)


@broken("C740", "Leaves it to the operating system when its ledger reaches the disk.")
def leaves_the_disk_for_later():
    sound = sqlite.connect

    def connect(path):
        db = sound(path)
        db.execute("PRAGMA synchronous = NORMAL")
        return db

    sqlite.connect = connect


@broken("C730", "Charges what it could not write once it can, and again when it is asked again.")
def charges_later_what_it_could_not_write():
    sound = Ledger.settle
    queue = []

    def settle(self, request, answer, *how, **room):
        try:
            entry = sound(self, request, answer, *how, **room)
        except LedgerUnavailable:
            queue.append((replace(request, request_id=f"{request.request_id} later"), answer, how, room))
            raise
        while queue:
            later, its, how, room = queue.pop()
            sound(self, later, its, *how, **room)
        return entry

    Ledger.settle = settle


@broken("C730", "Takes a full disk for a fault of its own.", raises=True)
def fails_on_a_full_disk():
    @contextmanager
    def explained(_):
        try:
            yield
        except LedgerUnavailable:
            raise Refusal(error_pb2.REASON_INTERNAL) from None

    audit_service.explained = explained


@broken("C730", "Answers from memory where the ledger cannot be written.")
def sells_on_a_full_disk():
    sound = Ledger.settle
    kept = {}

    def settle(self, request, answer, *how, **room):
        try:
            return sound(self, request, answer, *how, **room)
        except LedgerUnavailable:
            books = self._chains[""].books
            fresh = LedgerEntry(
                books.head.sequence + 1, request, answer(()), books.remaining_after(request), time.time(), b""
            )
            return kept.setdefault(request.digest, fresh)

    Ledger.settle = settle


@broken("C738", "Says that it is well whatever becomes of its ledger.")
def well_on_a_full_disk():
    Writable.__call__ = lambda _: True


@broken("C733", "Believes whatever ledger it finds.")
def takes_old_copies():
    ledger._check_seal = lambda *_: None


@broken("C735", "Seals the head of a new ledger where the old one is gone.")
def seals_a_new_ledger():
    def check(place, key, *, new):
        if not place.ledger.exists():
            place.seal.unlink(missing_ok=True)

    serve.check_begun = check


@broken("C736", "Begins anew where ledger and head are gone, although it has been here before.")
def begins_a_lost_ledger_anew():
    serve.check_begun = lambda *_, **__: None


@broken("C762", "Serves smaller groups than answers have counted on.")
def lowers_the_least_group():
    ledger._check_groups = lambda *_: None
