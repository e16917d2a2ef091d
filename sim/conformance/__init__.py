"""Tests of whether a server or a client, whoever wrote it, keeps to the protocol.

`cases/` holds the checks, as data; `cases.py` reads them, `steps.py` and its neighbours run their steps, `run.py` runs
the cases, `report.py` formats the outcomes. `kit.py` makes the policies, people and certificates for a test.
"""
