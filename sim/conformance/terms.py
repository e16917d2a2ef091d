"""One kind of step that asks for the terms of audits."""

from __future__ import annotations

from typing import Literal

from fairwall.laws.commitment import commit, digest_of, rows_of
from fairwall.wire.metrics import name_of
from fairwall.wire.precision import from_message
from sim.conformance.calls import Violation
from sim.conformance.vocabulary import Expect, Words
from sim.conformance.world import World


class Terms(Words):
    """Asks for the terms, every field of which must be what the policy says.

    `name` is what later steps call it; `same_as` in `expect` names one that was told the same. Of a commitment these
    fields are `others` than what the one that `unlike` names was told, and no field besides is.
    """

    do: Literal["terms"]
    name: str = ""
    caller: str = "developer"
    deployment: str = ""
    others: tuple[str, ...] = ()
    expect: Expect = Expect()

    def run(self, world: World) -> None:
        """Ask, and compare."""
        about = world.about(self.deployment)
        seen = world.terms(self.caller, self.deployment)
        self.expect.check_end(seen)
        if not seen.answered:
            return
        told = seen.messages[0]
        share = about.shares.get(world.subject.target.developer(self.caller))
        facts = {
            "people": (told.people, about.people),
            "metrics": (tuple(map(name_of, told.metrics)), tuple(about.metrics)),
            "mechanism": (told.mechanism, about.mechanism),
            "queries_max": (told.queries_max, about.queries_max),
            "precision": (from_message(told.precision), about.precision),
            "epsilon_max": (told.epsilon_max, about.epsilon_max),
            "minimum_group": (told.minimum_group or 1, about.minimum_group),
            "epsilon": (told.epsilon, told.epsilon if share is None else share),
        }
        if about.by:
            facts["by"] = (tuple(told.by), tuple(about.by))
        if told.HasField("commitment"):
            people, bound = world.people(self.deployment), told.commitment
            rows, groups = rows_of(people.labels), people.protected.tolist()
            facts["what is committed to"] = (bound.rows, bound.rows_digest), (len(rows), digest_of(rows))
            public = (b"", about.deal.encode(), bound.rows_digest, bound.seed_digest, bound.terms_digest)
            if bound.root in (commit(rows, groups, b"", key).root for key in public):
                raise Violation("salts follow from what is public: who is in which group can be tried out")
        for name, (found, expected) in facts.items():
            if found != expected:
                raise Violation(f"the terms say that {name} is {found!r}; the policy says {expected!r}")
        if not 0 <= told.epsilon_remaining <= told.epsilon:
            raise Violation(f"the terms say that {told.epsilon_remaining!r} of {told.epsilon!r} is left")
        if self.expect.unlike:
            earlier = world.results[self.expect.unlike].seen.messages[0].commitment
            fields = [each.name for each in earlier.DESCRIPTOR.fields]
            unlike = [name for name in fields if getattr(earlier, name) != getattr(told.commitment, name)]
            if unlike != list(self.others):
                raise Violation(f"of the commitment {unlike} are others now; these should be: {list(self.others)}")
        self.expect.check_told(seen, world, self.name)
