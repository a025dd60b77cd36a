"""Faces of the engine towards buses and memories that others define."""
