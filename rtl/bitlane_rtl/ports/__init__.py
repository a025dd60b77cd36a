"""Signatures of the engine's ports, independent of any bus, and an arbiter for a read port."""
