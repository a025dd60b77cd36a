"""Does a device do what it should? Checks of link, memory, operators and faults, step by step.

Everything is compared with the NumPy model; the device's memory is overwritten.
"""
