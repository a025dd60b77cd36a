"""A batch of instances of a bitstream's circuit, each with one bit of a LUT flipped.

A flip is data: all instances share one circuit, and two input ports select the bit.
"""
