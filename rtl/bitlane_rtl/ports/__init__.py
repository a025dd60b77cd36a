"""Signatures of the engine's ports, independent of any bus, and arbiters that share a port."""
