"""Our service with its ledger in a database, whatever its policy says.

``python postgres_service.py URL --policy FILE`` starts it.

A database is made for each ledger that a policy names, and another one where its key is gone.

Checks that take or spoil the ledger's file do not apply. Those of a full disk reach the sealed head alone.
"""

from __future__ import annotations

import hashlib
import sys
from dataclasses import replace

import psycopg

from compliance.__main__ import main
from compliance.deployment.policy import reading

URL = sys.argv.pop(1)


def parse(content, path, sound=reading.parse):
    policies = sound(content, path)
    place = policies.deployment
    name = "l" + hashlib.sha256(str(place.ledger.resolve()).encode()).hexdigest()[:20]
    begun = (place.credentials / "seal.key").exists()
    with psycopg.connect(URL, autocommit=True) as db:
        there = db.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,)).fetchone()
        if there and not begun:
            db.execute(f"DROP DATABASE {name} WITH (FORCE)")
        if not there or not begun:
            db.execute(f"CREATE DATABASE {name}")
    return replace(policies, deployment=place.model_copy(update={"ledger": URL.replace("/postgres?", f"/{name}?")}))


reading.parse = parse

if __name__ == "__main__":
    main()
