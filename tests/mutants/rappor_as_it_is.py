"""Turns no bit over where RAPPOR releases."""

import dataclasses

from compliance.__main__ import main
from compliance.mechanisms.local import PROTOCOLS

KILLED_BY = "C917"

sound = PROTOCOLS["rappor"]
PROTOCOLS["rappor"] = dataclasses.replace(
    sound,
    sample=lambda law, values, draw: sound.sample(dataclasses.replace(law, missing=1e-9, extra=1e-9), values, draw),
)

if __name__ == "__main__":
    main()
