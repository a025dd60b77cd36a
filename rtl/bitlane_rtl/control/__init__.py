"""What the host talks to: registers, command ring, refusals and the sequencer. Moves no data."""
