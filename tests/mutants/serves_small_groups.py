"""Serves groups that are smaller than the policy says."""

from compliance.__main__ import main
from compliance.records.people import Records

KILLED_BY = "C609"

Records.__post_init__ = lambda _: None
Records.smallest_group = lambda *_: 1_000_000

if __name__ == "__main__":
    main()
