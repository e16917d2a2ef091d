"""Charges whoever asks to the first developer of the policy."""

from compliance.__main__ import main
from compliance.answers import audit_service as service

KILLED_BY = "C110"

service.developer_of = lambda _: "alice"

if __name__ == "__main__":
    main()
