"""Audits where people work: in scikit-learn's searches, in pytest, in MLflow, in asyncio. Each module has its tool."""
