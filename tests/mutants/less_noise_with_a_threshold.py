"""Adds a third of the noise where a threshold is given and the metric is absolute."""

from compliance.__main__ import main
from compliance.answers import audit_service as service
from compliance.noise.sampling import System

KILLED_BY = "C520"

sound, sound_settle, asked = System.laplace, service._answer, []


def settle(case, header, metric, predictions, context, *rest, **named):
    asked[:] = [header.HasField("threshold") and metric.startswith("abs_")]
    return sound_settle(case, header, metric, predictions, context, *rest, **named)


def laplace(self, values, scale, step):
    return sound(self, values, scale / (3 if asked and asked[0] else 1), step)


service._answer = settle
System.laplace = laplace

if __name__ == "__main__":
    main()
