"""Calls on arrays of the host: operands, their tiles, and their way to the device and back."""
