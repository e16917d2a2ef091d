"""Tests whether a server or a client, whoever wrote it, keeps to the protocol.

`cases/` holds the checks, as data; `cases.py` reads them, `steps.py` and its neighbours know how to do what they say,
`run.py` runs them, `report.py` tells what came of it. `kit.py` makes what a server is tested with.
"""
