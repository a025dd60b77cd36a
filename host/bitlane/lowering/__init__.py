"""Lowering of operations on strided tensors to the fewest commands, and fences between these."""
