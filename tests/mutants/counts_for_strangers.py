"""Counts by group for whoever has a certificate of the deployment."""

from compliance.__main__ import main
from compliance.answers import group_service as service
from fairwall.rpc import identity, server

KILLED_BY = "C104"

sound, opened = server._Gate._check, service.opened


def check(self, caller, certificates, method):
    if caller is not None and caller.party == "developer" and "GroupService" in method:
        caller = identity.Caller(caller.run, "developer", "alice")
    return sound(self, caller, certificates, method)


server._Gate._check = check
service.developer_of = lambda _: "alice"
service.opened = lambda cases, deal_id, context: cases.get(deal_id) or opened(cases, deal_id, context)

if __name__ == "__main__":
    main()
