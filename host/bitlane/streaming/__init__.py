"""Calls on arrays of the host, one at a time: their tiles, and their way to the device and back."""
