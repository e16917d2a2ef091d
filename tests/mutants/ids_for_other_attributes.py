"""Takes requests for counts for the same that ask by other attributes."""

from compliance.__main__ import main
from compliance.answers import group_service as service

KILLED_BY = "C320"

sound = service.by_group_digest


def digest(header, terms, predictions):
    blind = type(header)()
    blind.CopyFrom(header)
    del blind.by[:]
    return sound(blind, terms, predictions)


service.by_group_digest = digest

if __name__ == "__main__":
    main()
