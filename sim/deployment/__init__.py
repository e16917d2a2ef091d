"""What a compliance team needs before it serves a deployment: certificates, and which mechanism to choose."""
