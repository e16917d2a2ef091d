"""Servers that search wrongly among candidates."""

import copy
from dataclasses import replace

import numpy as np

from compliance.answers import audit_service, audits
from compliance.mechanisms import cells
from fairwall.laws.studies.alternatives import Candidates
from tests.broken import broken


@broken("C971", "Searches, and draws nothing.")
def draws_nothing():
    audit_service.search_of = lambda _: None


@broken("C971", "Draws the gap of each candidate by itself, as if no two models were alike.")
def draws_apart():
    sound = audits._draws

    def drawn(*asked):
        return np.random.default_rng(0).permuted(sound(*asked), axis=0)

    audits._draws = drawn


@broken("C971", "Draws the gaps of candidates in another order than theirs.")
def draws_in_another_order():
    sound = audits._draws

    def drawn(*asked):
        return np.roll(sound(*asked), 1, axis=1)

    audits._draws = drawn


@broken("C976", "Draws the gaps of candidates around the exact ones, and not around the answers.")
def draws_around_the_exact_gaps():
    sound = audits._draws

    def drawn(question, name, release, generator):
        return sound(question, name, release, generator) + (question.gaps() - release.values)

    audits._draws = drawn


@broken("C973", "Draws other gaps each time that the same search is asked for.")
def draws_anew():
    sound = audit_service.search_of

    def found(entry):
        search = sound(entry)
        if search is None:
            return None
        return replace(search, draws=np.random.default_rng().permutation(search.draws))

    audit_service.search_of = found


@broken("C973", "Takes a search for the same whatever its candidates are called and worth.")
def forgets_among_what_was_searched():
    sound = audit_service.audit_digest

    def digest(header, predictions):
        same = copy.deepcopy(header)
        if hasattr(same, "candidates"):
            same.ClearField("candidates")
        return sound(same, predictions)

    audit_service.audit_digest = digest


@broken("C972", "Takes candidates as they come, whatever they are.")
def searches_among_anything():
    def read(header):
        if not header.HasField("candidates"):
            return None
        told = header.candidates
        return Candidates(tuple(told.names), tuple(told.utilities), told.baseline, told.at_least)

    audit_service.candidates_in = read


@broken("C975", "Spends all of epsilon in each round of a search, and charges it once.")
def searches_for_more_than_its_price():
    sound = cells._buy

    def buy(question, facts, epsilon, noise, limit, besides):
        return sound(question, facts, epsilon if besides else 3 * epsilon, noise, limit, besides)

    cells._buy = buy
