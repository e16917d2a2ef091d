"""The release game: attributes are released sanitised, and the model trained on them is audited."""

from __future__ import annotations

import hashlib
import hmac

import numpy as np

from compliance.answers.accounts import Accounts
from compliance.answers.audits import AuditCase
from compliance.answers.releases import AttributeRelease, HandedModel, ReleaseCase, SanitisedColumn, game_release
from compliance.games import audits as audited
from compliance.games.trial import Around, Cards, OpenTrial, seed_of
from compliance.ledger.accountant import Neighbours
from compliance.mechanisms import find_mechanism
from compliance.noise.draw_log import DrawLog
from compliance.records.people import Records
from fairwall.game.v1 import referee_service_pb2 as game
from fairwall.wire.queries import trained_on


def open_trial(deal: game.ComplianceDeal, cards: Cards, around: Around) -> OpenTrial:
    """Open the release, the audits of the model handed over, and queries about the people it was trained on."""
    release = open_release(deal, cards)
    case = audited.open_case(deal, deal.release.audits, cards, release.model, around.draws)
    trained = open_trained(deal, release.release, around.draws)
    audits = {each.dataset: each for each in (case, trained) if each is not None}

    def report() -> game.SubmitAuditReportRequest:
        made = audited.report_of(case)
        made.utilities.extend(release.model.utilities)
        made.group_rates.extend(release.model.group_rates(case.records))
        made.release_spent = release.release.spent
        if trained is not None:
            made.release_audits.extend(audited.answered(trained))
        return made

    return OpenTrial(Accounts(audits, releases={deal.deal_id: release}), report)


def open_release(deal: game.ComplianceDeal, cards: Cards) -> ReleaseCase:
    """Open the release alone."""
    terms = deal.release.terms
    columns = [SanitisedColumn(column.place, column.domain, column.share, column.name) for column in terms.columns]
    labels, values, sensitive = (
        cards[name].astype(np.uint8, copy=False) for name in ("labels", "release", "sensitive")
    )
    return ReleaseCase(
        game_release(trained_on(deal.deal_id), terms.protocol, columns, values, terms.budget, seed_of(deal)),
        HandedModel(labels, cards["features"].astype(np.int64), sensitive, columns, terms.sizes),
        tells_utilities=find_mechanism(deal.release.audits.mechanism).guarantee == "none",
    )


def open_trained(
    deal: game.ComplianceDeal, release: AttributeRelease, draws: DrawLog | None = None
) -> AuditCase | None:
    """Open the audits of the people whose attributes are released; None if the deal has no queries.

    One budget, for one person's attributes against any others (`Neighbours.ATTRIBUTES`), pays for both in one ledger.
    The release loses epsilon_r in this unit. A batch of queries that loses epsilon_q for one flip of A loses as much in
    it: of the attributes that change it depends on A alone, and A changes by one flip or not at all. A request may
    depend on what was released and answered before; by the composition of adaptively chosen mechanisms losses still add
    up, so that

        epsilon_r + sum of the batches' epsilon_q <= release.epsilon,

    which the ledger enforces whatever the developer requests, and in whatever order.
    """
    if not deal.release.terms.HasField("queried"):
        return None
    asked = deal.release.terms.queried
    (groups,) = (place for place, column in enumerate(deal.release.terms.columns) if column.groups)
    protected = release.values[:, groups]
    # The labels are the developer's; statistical parity looks at none.
    records = Records(labels=np.zeros_like(protected), protected=protected, metrics=("sp",))
    return AuditCase(
        dataset=release.dataset,
        records=records,
        mechanism=find_mechanism(asked.mechanism),
        ledger=release.ledger,
        queries_max=asked.queries,
        # A separate seed: request ids tell noise apart within one case only.
        seed=hmac.digest(deal.seed, b"trained", hashlib.sha256) if deal.noise_seeded else None,
        exact={},
        draws=draws,
        neighbours=Neighbours.ATTRIBUTES,
    )
