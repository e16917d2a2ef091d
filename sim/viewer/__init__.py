"""``fairwall view RUN``: a page that replays a recorded run in a browser, and needs nothing else.

All content comes from transcripts: sentences and order from `sim.replay.captions`, labels from the protocol
(`sim.transcripts.boundary`), findings from `sim.verify.check`. `sim.viewer.visibility` decides what a page may hold.
"""
