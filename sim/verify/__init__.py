"""``fairwall verify RUN``: what the transcripts prove of a run."""
