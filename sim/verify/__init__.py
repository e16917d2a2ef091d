"""``fairwall verify RUN``: checks what the transcripts prove about a run."""
