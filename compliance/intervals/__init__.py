"""Between what numbers the gaps lie that answers are about."""
