"""`bitlane area`: LUTs and clock of the circuit, placed and routed out of context."""
