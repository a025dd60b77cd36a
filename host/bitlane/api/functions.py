"""The operators as functions. The names of this module are the names that `bitlane` has of it."""

from .default import AnyDevice as _AnyDevice

_on = _AnyDevice()

bit_not = _on.bit_not
bit_copy = _on.bit_copy
bit_and = _on.bit_and
bit_or = _on.bit_or
bit_xor = _on.bit_xor
bit_nand = _on.bit_nand
bit_nor = _on.bit_nor
bit_xnor = _on.bit_xnor
bit_shift_left = _on.bit_shift_left
bit_shift_right = _on.bit_shift_right
bit_count = _on.bit_count
cardinality = _on.cardinality
hamming = _on.hamming
jaccard = _on.jaccard
