"""Lets in every developer of the deployment, whether the policy names it or not."""

from compliance.__main__ import main
from fairwall.rpc import server

KILLED_BY = "C104"


class Places(dict):
    def __contains__(self, caller):
        return caller.party == "developer" or super().__contains__(caller)

    def get(self, caller):
        return self.setdefault(caller, server._Place(server.Meter(server.Quota())))


def admit(self, deployed, sound=server._Gate.admit):
    sound(self, deployed)
    self._places = Places(self._places)


server._Gate.admit = admit

if __name__ == "__main__":
    main()
