"""The kind of step in which a regulator opens the answers of a server that committed to its noise."""

from __future__ import annotations

import subprocess
import sys
from typing import Any, Literal

import numpy as np

from fairwall.client.kept import Kept, KeptError
from fairwall.rpc import arrays
from sim.conformance.audits import AuditStep
from sim.conformance.calls import ProtocolViolation
from sim.conformance.vocabulary import Predictions, Words
from sim.conformance.world import CaseState, NotRun


class OpeningStep(Words):
    """A step that requests batches, keeps requests and answers, and has a regulator open all that this case kept."""

    do: Literal["opened"]

    def run(self, world: CaseState) -> None:
        """Request batches, and open them."""
        if not world.subject.starts:
            raise NotRun("needs a server that the tester starts, to open what it answered")
        caller, about, terms = world.subject.target.developer("developer"), world.about(), world.terms("developer")
        if not terms.answered:
            raise ProtocolViolation(f"who asked for the terms {terms.text}")
        folder = world.subject.place(world.deployment).parent / f"kept-{world.nonce}"
        try:
            kept = Kept.begin(folder, about.deal, caller, terms.messages[0].commitment)
        except KeptError:
            raise ProtocolViolation("what it commits to has changed") from None
        world.open_account("developer", "")
        for number, metric in enumerate(about.metrics):
            own: dict[str, Any] = {"threshold": 0.1} if number % 2 else {"nonce": f"nonce {number}"}
            own["predictions"] = Predictions(models=number + 1, random=number)
            step = AuditStep(do="audit", id=f"{world.step}-{number}", metric=metric, **own)
            asked = step.asked(world)
            seen = step.ask(world, asked)
            step.expect.check_end(seen)
            step.check_answer(world, asked, seen)
            gaps = np.asarray(arrays.from_message(seen.messages[0].gaps), np.float64)
            kept.keep(asked.header, [asked.predictions], gaps)
        if not (world.subject.shown(world.deployment) / "seal.key").exists():
            raise NotRun("needs a server whose key and ledger `fairwall deploy open` reads")
        policy = str(world.subject.policy(world.deployment))
        asked_for = [sys.executable, "-m", "sim", "deploy", "open", str(folder), "--policy", policy]
        done = subprocess.run(asked_for, capture_output=True, text=True, check=False)  # noqa: S603 - our own command
        if done.returncode:
            raise ProtocolViolation(f"a regulator finds: {' / '.join((done.stdout + done.stderr).splitlines())}")
