"""Searches, and draws nothing."""

from compliance.__main__ import main
from compliance.answers import audit_service

KILLED_BY = "C971"

audit_service.search_of = lambda _: None

if __name__ == "__main__":
    main()
