"""Writes its ledger when it is ended, and loses it when it is killed."""

import os
import sqlite3

from compliance import ledger
from compliance.__main__ import main
from compliance.deployment import serve
from compliance.ledger import head as seal

KILLED_BY = "C308"

leave = os._exit


def ledger_of(*given, sound=serve.open_ledger, **named):
    opened = sound(*given, **named)
    memory = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    disk, opened._store.db = opened._store.db, memory
    disk.backup(memory)
    os._exit = lambda status: (memory.backup(disk), leave(status))
    return opened


seal.Seal.read = lambda _: None
ledger._check_seal = lambda *_: None
serve.open_ledger = ledger_of

if __name__ == "__main__":
    main()
