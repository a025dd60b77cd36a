"""One file per board, and the building, loading and reading back of bitstreams.

No board is supported yet; the circuit runs in simulation (`bitlane_sim`). This package may import
`bitlane` and `bitlane_rtl`; neither of them may import it.
"""
