"""The kind of step that requests the terms of audits."""

from __future__ import annotations

from typing import Literal

from fairwall.laws.commitment import commit, rows_of
from fairwall.laws.commitment import digest_of as digest_of_rows
from fairwall.laws.mechanisms import MECHANISM_LAWS
from fairwall.wire.limits import EPSILON_MIN
from fairwall.wire.metrics import name_of
from fairwall.wire.precision import from_message
from fairwall.wire.rows import digest_of, order_of
from sim.conformance.calls import ProtocolViolation
from sim.conformance.vocabulary import Expect, Words
from sim.conformance.world import CaseState
from sim.conformance.worth import require_budget


class TermsStep(Words):
    """A step that requests the terms, every field of which must be what the policy says.

    `name` is for later steps; `same_as` in `expect` names a step that got the same terms. In the commitment the fields
    `others`, and no more, must differ from what the step that `unlike` names got. `released` is the epsilon for which
    the policy also releases the same people's attributes.
    """

    do: Literal["terms"]
    name: str = ""
    caller: str = "developer"
    deployment: str = ""
    others: tuple[str, ...] = ()
    released: float = 0.0
    expect: Expect = Expect()

    def run(self, world: CaseState) -> None:
        """Request the terms, and compare them."""
        about = world.about(self.deployment)
        seen = world.terms(self.caller, self.deployment)
        self.expect.check_end(seen)
        if not seen.answered:
            return
        told = seen.messages[0]
        share = about.shares.get(world.subject.target.developer(self.caller))
        law = MECHANISM_LAWS.get(about.mechanism)
        limits = law is not None and law.noise_on in ("any", "cells")
        facts = {
            "people": (told.people, about.people),
            "metrics": (tuple(map(name_of, told.metrics)), tuple(about.metrics)),
            "mechanism": (told.mechanism, about.mechanism),
            "queries_max": (told.queries_max, about.queries_max),
            "precision": (from_message(told.precision), about.precision),
            "epsilon_max": (told.epsilon_max, about.epsilon_max),
            "epsilon_min": (told.epsilon_min or EPSILON_MIN, about.epsilon_min or EPSILON_MIN),
            "reveal_max": (told.reveal_max or 1.0, about.reveal_max if limits else 1.0),
            "minimum_group": (told.minimum_group or 1, about.minimum_group),
            "epsilon": (told.epsilon, told.epsilon if share is None else share),
        }
        if about.by:
            facts["by"] = (tuple(told.by), tuple(about.by))
        if told.HasField("commitment"):
            whom, bound = world.people(self.deployment), told.commitment
            committed, groups = rows_of(whom.labels), whom.protected.tolist()
            facts["what is committed to"] = (bound.rows, bound.rows_digest), (len(committed), digest_of_rows(committed))
            guessed = (b"", about.deal.encode(), bound.rows_digest, bound.seed_digest, bound.terms_digest)
            if bound.root in (commit(committed, groups, b"", key).root for key in guessed):
                raise ProtocolViolation("salts follow from what is public: who is in which group can be tried out")
        if (rows := world.subject.target.rows(self.deployment or world.deployment)) and told.HasField("rows"):
            (ids, public), order = rows, order_of(rows[0])
            alone = tuple(digest_of(ids, order, {name: values}) for name, values in public.items())
            found = told.rows.id_column, tuple(told.rows.public_columns), tuple(told.rows.column_digests)
            facts["rows"] = (found, (about.ids, tuple(public), alone))
            digests = (digest_of(ids, order), digest_of(ids, order, public) if public else b"")
            facts["digests"] = ((told.rows.ids_digest, told.rows.table_digest), digests)
        for name, (found, expected) in facts.items():
            if found != expected:
                raise ProtocolViolation(f"the terms say that {name} is {found!r}; the policy says {expected!r}")
        people = world.subject.target.people(self.deployment or world.deployment)
        if people is not None and law is not None and told.HasField("budget"):
            require_budget(told.budget, about, people.labels, told.epsilon, self.released)
        if not 0 <= told.epsilon_remaining <= told.epsilon:
            raise ProtocolViolation(f"the terms say that {told.epsilon_remaining!r} of {told.epsilon!r} is left")
        if self.expect.unlike:
            earlier = world.results[self.expect.unlike].seen.messages[0].commitment
            fields = [each.name for each in earlier.DESCRIPTOR.fields]
            unlike = [name for name in fields if getattr(earlier, name) != getattr(told.commitment, name)]
            if unlike != list(self.others):
                raise ProtocolViolation(
                    f"of the commitment {unlike} are others now; these should be: {list(self.others)}"
                )
        self.expect.check_told(seen, world, self.name)
