"""Audits inside other tools: scikit-learn's searches, pytest, MLflow, asyncio; a module for each."""
