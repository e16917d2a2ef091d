"""``fairwall replay RUN``: a recorded game, played again.

The whole of it, from the seeds that its scenario holds; or one party alone, whose counterparts answer from its own
transcript (`sim.replay.alone`); or the developer with another decoder on the answers already given. What differs is
named by the first message that does (`sim.replay.differences`).
"""
