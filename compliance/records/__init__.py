"""Whom audits are about: people in two groups or in more, their rows, and whether they are the same as others."""
