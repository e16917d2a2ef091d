"""Servers that answer wrongly about tables of predictions."""

from dataclasses import replace

from compliance.answers import audit_service
from compliance.answers.audits import AuditCase
from compliance.mechanisms import cube
from compliance.records import engine
from compliance.records.engine import Tables
from fairwall.rpc.errors import Refusal
from fairwall.wire.v1 import error_pb2
from tests.broken import broken
from tests.broken.sealed import tells_totals


@broken("C991", "Answers about every table that the policy names, whoever asks.")
def any_table():
    sound = Tables.sums

    def sums(self, developer, name, *asked):
        opened = {key: replace(each, developers=frozenset({developer})) for key, each in self.opened.items()}
        return sound(replace(self, opened=opened), developer, name, *asked)

    Tables.sums = sums


@broken("C992", "Takes a table that has somebody twice, who then counts twice.")
def counts_a_person_twice():
    sound = engine._checked

    def checked(rows, models, known):
        if rows and rows[0]["ids"] == known.number:
            return engine._of_labels(rows, models)
        return sound(rows, models, known)

    engine._checked = checked


@broken("C992", "Counts how many people there are of each kind, and not whether they are who they were.")
def does_not_see_that_people_moved():
    sound = engine._checked

    def checked(rows, models, known):
        same = [{**row, "quick": known.quick.get((row["y"], row["a"]))} for row in rows]
        return sound(same, models, known)

    engine._checked = checked


@broken("C992", "Takes a table that lacks people: whoever is not in it has scored nothing.")
def takes_tables_of_some_people():
    sound = engine._checked

    def checked(rows, models, known):
        cells = {(row["y"], row["a"]) for row in rows}
        if rows and rows[0]["rows"] == rows[0]["ids"] == sum(row["n"] for row in rows) and cells == known.counts.keys():
            return engine._of_labels(rows, models)
        return sound(rows, models, known)

    engine._checked = checked


@broken("C993", "Takes a prediction that a table lacks for 0.")
def takes_missing_predictions():
    sound = engine._checked

    def checked(rows, models, known):
        whole = [{**row, **{f"count{j}": row["n"] for j in range(models)}} for row in rows]
        return sound(whole, models, known)

    engine._checked = checked


@broken("C990", "Refuses a table that scores nobody, free of charge.")
def refuses_tables_that_score_nobody():
    sound = engine._checked

    def checked(rows, models, known):
        found = sound(rows, models, known)
        if not found.total.any():
            raise Refusal(error_pb2.REASON_PREDICTIONS_OUT_OF_RANGE)
        return found

    engine._checked = checked


@broken("C994", "Takes a table of the same name for the same request, whatever its rows are now.")
def ids_for_tables_by_name():
    sound = audit_service.table_digest
    audit_service.table_digest = lambda request, _: sound(request, b"")


@broken("C997", "Reads a table before it looks at the budget.")
def reads_tables_before_it_is_paid():
    AuditCase.require_covered = lambda *_: None


@broken("C995", "Adds no noise to what a table adds up to over everybody.")
def totals_of_tables_without_noise():
    tells_totals(cube)
