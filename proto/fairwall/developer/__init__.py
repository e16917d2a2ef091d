"""Services of the developer."""
