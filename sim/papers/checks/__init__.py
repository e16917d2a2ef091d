"""Checks of the papers' theorems: a module for each paper, a function for each claim."""
