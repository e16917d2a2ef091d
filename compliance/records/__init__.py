"""Whom audits are about: the only code that touches a protected column."""
