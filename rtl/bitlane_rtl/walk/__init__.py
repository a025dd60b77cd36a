"""From a command to addresses: nested loops, runs, spans and bursts. Reads and writes no memory."""
