"""The parts that all messages of the protocol share."""
