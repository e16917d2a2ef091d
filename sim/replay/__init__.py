"""``fairwall replay RUN``: plays a recorded game again.

A replay is of the whole game, from its scenario's seeds; of one party alone, which the others answer from its own
transcript (`sim.replay.alone`); or of the developer with another decoder on the recorded answers. The first message
that differs is reported (`sim.replay.differences`).
"""
