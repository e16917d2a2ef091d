"""``fairwall view RUN``: a recorded run as one page, which replays it in a browser and needs nothing else.

What is told comes from transcripts: sentences and order from `sim.replay.captions`, labels from the protocol
(`sim.transcripts.boundary`), findings from `sim.verify.check`. `sim.viewer.sight` decides what a page may hold.
"""
