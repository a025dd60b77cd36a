"""Every bit of a bitstream's LUTs flipped, each in an instance of its own of the circuit it makes.

The flips are data: one circuit has them all, and each instance is told which one it has.
"""
