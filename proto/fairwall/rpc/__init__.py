"""How the parties talk: arrays, channels, servers, identities, refusals, and the life of a party's process."""
