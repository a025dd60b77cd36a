"""Acceptance test of a device: link, memory, operators and faults, step by step.

Everything is compared with the NumPy model; the device's memory is overwritten.
"""
