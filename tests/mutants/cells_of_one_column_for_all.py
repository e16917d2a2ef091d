"""Answers by one protected column from the cells that were bought by another."""

from compliance.__main__ import main
from compliance.answers import audits

KILLED_BY = "C966"

write, read = audits._encode, audits.facts_of

audits._encode = lambda facts, *_, **__: write(facts)
audits.facts_of = lambda bought, *_, **__: read(bought)

if __name__ == "__main__":
    main()
