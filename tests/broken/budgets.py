"""Servers that sell more than a budget allows, or less."""

import contextlib
import threading
import time
from collections import Counter
from dataclasses import replace

from compliance import ledger
from compliance.answers import audit_service
from compliance.answers.audits import AuditCase
from compliance.deployment import serve
from compliance.ledger import Ledger
from compliance.ledger.accountant import FREE, Budget, Neighbours, Rule
from compliance.ledger.entries import Books, LedgerEntry
from compliance.mechanisms.noise_on_gaps import LaplaceMechanism
from fairwall.rpc import fair_use
from tests.broken import broken


@broken("C401", "Charges nothing where a threshold is given.")
def free_comparisons():
    sound = audit_service._answer

    class Free(LaplaceMechanism):
        def cost(self, *_):
            return FREE

    def settle(case, header, metric, predictions, context, *rest, **named):
        cheap = replace(case, mechanism=Free()) if header.HasField("threshold") else case
        return sound(cheap, header, metric, predictions, context, *rest, **named)

    audit_service._answer = settle


@broken("C401", "Charges a batch its epsilon once a model.")
def charges_per_model():
    sound = AuditCase.answer

    def settle(self, developer, request_id, digest, metric, predictions, *more, **named):
        others = len(predictions) - 1
        entry = sound(self, developer, request_id, digest, metric, predictions, *more, **named)
        for number in range(min(others, 3)):
            sound(self, developer, f"{request_id[:50]}~{number}", digest, metric, predictions, *more, **named)
        return entry

    AuditCase.answer = settle


@broken("C402", "Refuses a batch that costs all that is left.")
def refuses_the_last_batch():
    sound = Books.affords

    def affords(self, request):
        left = self._remaining(request.dataset, request.developer, Counter())
        return sound(self, request) and request.loss.epsilon < left

    Books.affords = affords


@broken("C402", "Answers as long as anything is left, whatever a batch costs.")
def spends_one_batch_too_many():
    Books.affords = lambda self, request: self._remaining(request.dataset, request.developer, Counter()) > 0


@broken("C406", "Looks at each developer's share alone: together they spend more than there is.")
def ignores_the_whole_budget():
    def affords(self, request):
        share = self.budget(request.dataset, request.developer)
        return share is not None and share.affords(self.losses(request.dataset, request.developer), request.loss)

    Books.affords = affords


@broken("C402", "Looks at the whole budget of those whose attributes are released, not at the developer's share of it.")
def releases_beyond_the_share():
    def allocate(self, dataset, developer, epsilon, delta=0.0, sound=Ledger.allocate):
        if dataset.endswith("-release"):
            with self._held(dataset) as held:
                epsilon = held.books.budget(dataset).epsilon
        sound(self, dataset, developer, epsilon, delta)

    Ledger.allocate = allocate


@broken("C403", "Looks at the budget first and charges later: requests at the same time all fit.")
def overspends_at_once():
    sound, affords = Ledger.settle, Books.affords
    looked = threading.local()

    def settle(self, request, answer, *how, **room):
        with self._held(request.dataset) as held:
            looked.fits = affords(held.books, request)
        time.sleep(0.2)
        return sound(self, request, answer, *how, **room)

    Books.affords = lambda *_: looked.fits
    Ledger.settle = settle
    fair_use.working = lambda _: contextlib.nullcontext()


@broken("C404", "Keeps its ledger in memory: a restart gives everything back.")
def forgets_the_budget():
    def ledger_of(policy, data):
        ledger = Ledger()
        for each in policy.datasets.values():
            budget = Budget(each.budget.epsilon, each.budget.delta, Rule(each.budget.rule))
            ledger.set_budget(each.data_name, Neighbours.A_FLIP, budget)
            for name, share in each.developers.items():
                ledger.allocate(each.data_name, name, share.epsilon, share.delta)
        return ledger

    serve.open_ledger = ledger_of


@broken("C750", "Counts what was charged within a day.")
def gives_budgets_back_tomorrow():
    sound = Books.add

    def add(self, record):
        sound(self, record)
        if isinstance(record, LedgerEntry):
            self.__dict__.setdefault("charges", []).append(record)

    def losses(self, dataset, developer=""):
        since = time.time() - 86400
        mine = (each.request for each in self.__dict__.get("charges", ()) if each.time > since)
        return Counter(each.loss for each in mine if each.dataset == dataset and developer in ("", each.developer))

    Books.add, Books.losses = add, losses


@broken("C751", "Leaves charges of the week before out when it starts.")
def forgets_old_charges_at_start():
    sound = Books.add
    started = time.time()

    def add(self, record):
        sound(self, record)
        if isinstance(record, LedgerEntry) and record.time < started - 7 * 86400:
            for developer in ("", record.request.developer):
                self._losses[record.request.dataset, developer] -= Counter([record.request.loss])

    Books.add = add


@broken("C841", "Looks at what it has sold itself, and not at what another service of its ledger has.")
def sells_what_another_has_sold():
    charge, sold = Ledger._charge, Counter()

    def charged(self, held, request, reply):
        sold[request.developer] += request.loss.epsilon
        return charge(self, held, request, reply)

    def affords(self, request):
        return sold[request.developer] + request.loss.epsilon <= self.budget(request.dataset, request.developer).epsilon

    Ledger._charge, Books.affords = charged, affords


@broken("C761", "Sells as many answers in a day as somebody can pay for.")
def any_number_of_answers():
    ledger._is_day_full = lambda *_: False
