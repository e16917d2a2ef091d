"""Says in its terms for the table, and for each of its public columns, what the ids alone have for a digest."""

from compliance.__main__ import main
from compliance.answers import audit_service

KILLED_BY = "C218"

sound = audit_service._rows_terms


def terms(case):
    told = sound(case)
    if told is not None and told.table_digest:
        told.table_digest = told.ids_digest
        told.column_digests[:] = [told.ids_digest] * len(told.column_digests)
    return told


audit_service._rows_terms = terms

if __name__ == "__main__":
    main()
