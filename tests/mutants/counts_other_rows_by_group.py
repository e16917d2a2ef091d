"""Counts by group whatever rows the caller says that they are."""

from typing import Any

from compliance.__main__ import main
from compliance.answers import audit_service as service
from compliance.answers import group_service

KILLED_BY = "C953"


def _received(header: Any, *rest: Any, **options: Any) -> Any:
    blind = type(header)()
    blind.CopyFrom(header)
    blind.rows_digest = b""
    return service.received(blind, *rest, **options)


group_service.received = _received

if __name__ == "__main__":
    main()
