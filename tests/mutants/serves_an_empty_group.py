"""Serves people among whom a group is empty, and finds out when it is asked."""

from compliance.__main__ import main
from compliance.deployment.policy.schema import DataSection
from compliance.records.people import Records

KILLED_BY = "C607"

Records.__post_init__ = lambda _: None
Records.smallest_group = lambda *_: DataSection.model_fields["minimum_group"].metadata and 1_000_000

if __name__ == "__main__":
    main()
