"""Answers the adversary for the models that are under audit."""

from developer import service
from fairwall.rpc.identity import Caller
from sim.conformance.reference_developer import main

KILLED_BY = "D104"

sound = service.ModelService.Predict


def predict(self, request_iterator, context):
    messages = list(request_iterator)
    asks = bool(messages) and bool(messages[0].header.request_id)
    service.identify = lambda _: Caller("kit", "compliance" if asks else "adversary")
    return sound(self, iter(messages), context)


service.ModelService.Predict = predict

if __name__ == "__main__":
    main()
