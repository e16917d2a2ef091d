"""Looks at the budget before it looks for the stored answer."""

from compliance.__main__ import main
from compliance.ledger import Ledger
from fairwall.rpc.errors import Refusal
from fairwall.wire.v1 import error_pb2

KILLED_BY = "C307"

sound = Ledger.settle


def settle(self, request, answer, *how, **room):
    with self._held(request.dataset) as held:
        if not held.books.affords(request):
            raise Refusal(error_pb2.REASON_BUDGET_EXHAUSTED)
    return sound(self, request, answer, *how, **room)


Ledger.settle = settle

if __name__ == "__main__":
    main()
