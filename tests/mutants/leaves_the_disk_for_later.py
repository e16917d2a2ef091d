"""Leaves it to the operating system when its ledger reaches the disk."""

from compliance.__main__ import main
from compliance.ledger import sqlite

KILLED_BY = "C740"

sound = sqlite.connect


def connect(path):
    db = sound(path)
    db.execute("PRAGMA synchronous = NORMAL")
    return db


sqlite.connect = connect

if __name__ == "__main__":
    main()
