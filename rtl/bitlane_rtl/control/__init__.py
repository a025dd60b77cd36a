"""The host's side of the engine: registers, command ring, checks and sequencer. Moves no data."""
