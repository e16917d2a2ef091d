"""Answers audits whatever rows the caller says that they are about."""

from compliance.__main__ import main
from compliance.answers import audit_service as service

KILLED_BY = "C953"

service._check_rows = lambda *_: None

if __name__ == "__main__":
    main()
