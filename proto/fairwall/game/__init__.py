"""Services of the referee."""
