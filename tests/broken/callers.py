"""Servers that admit the wrong caller, or charge the wrong one."""

from dataclasses import replace

from compliance.answers import audit_service, group_service
from compliance.answers.audits import AuditCase
from fairwall.rpc import access, identity, server
from fairwall.rpc.fair_use import Meter
from tests.broken import broken


@broken("C104", "Lets in every developer of the deployment, whether the policy names it or not.")
def any_developer():
    class Places(dict):
        def __contains__(self, caller):
            return caller.party == "developer" or super().__contains__(caller)

        def get(self, caller):
            return self.setdefault(caller, server._Place(server.Meter(server.Quota())))

    def admit(self, deployed, sound=server._Gate.admit):
        sound(self, deployed)
        self._places = Places(self._places)

    server._Gate.admit = admit


@broken("C104", "Counts by group for whoever has a certificate of the deployment.")
def counts_for_strangers():
    sound, opened = server._Gate._check, group_service.opened

    def check(self, caller, certificates, method):
        if caller is not None and caller.party == "developer" and "GroupService" in method:
            caller = identity.Caller(caller.run, "developer", "alice")
        return sound(self, caller, certificates, method)

    server._Gate._check = check
    group_service.developer_of = lambda _: "alice"
    group_service.opened = lambda cases, deal_id, context: cases.get(deal_id) or opened(cases, deal_id, context)


@broken("C105", "Takes a name for that of a developer whose name it begins with.")
def names_by_their_beginning():
    def identify(context, sound=identity.identify):
        caller = sound(context)
        if caller and caller.name.startswith("alice"):
            return replace(caller, name="alice")
        return caller

    server.identify = audit_service.identify = identify


@broken("C107", "Does not look at the run in a certificate.")
def any_run():
    def identify(context, sound=identity.identify):
        caller = sound(context)
        return replace(caller, run="kit") if caller else None

    server.identify = audit_service.identify = identify


@broken("C106", "Tells its terms to every party.")
def anybody_may_have_the_terms():
    access.CALLERS["/fairwall.compliance.v1.AuditService/GetTerms"] = access.PARTIES_OF_A_RUN


@broken("C115", "Lets anybody who is let in watch its health, for ever.")
def watched_health():
    access.CALLERS["/grpc.health.v1.Health/Watch"] = access.PARTIES_OF_A_RUN


@broken("C110", "Charges whoever asks to the first developer of the policy.")
def one_account_for_all():
    audit_service.developer_of = lambda _: "alice"


@broken("C110", "Takes the developer's name from the metadata.")
def trusts_metadata():
    sound = audit_service.developer_of
    audit_service.developer_of = lambda context: (
        dict(context.invocation_metadata()).get("x-developer") or sound(context)
    )


@broken("C113", "Takes the developer's name from the beginning of the request id.")
def trusts_the_request_id():
    sound = AuditCase.answer

    def settle(self, developer, request_id, *rest, **named):
        name = request_id.partition("/")[0] if "/" in request_id else developer
        return sound(self, name if name in ("alice", "bob") else developer, request_id, *rest, **named)

    AuditCase.answer = settle


@broken("C760", "Counts nobody's calls.")
def forgets_quotas():
    Meter._check = lambda _: None
