"""The preparations of a compliance team before it serves a deployment: certificates, and the choice of a mechanism."""
