"""Counts by group whatever rows the caller says that they are."""

from compliance import group_service
from compliance.__main__ import main

KILLED_BY = "C953"

group_service.check_rows = lambda _digest, _case: None

if __name__ == "__main__":
    main()
