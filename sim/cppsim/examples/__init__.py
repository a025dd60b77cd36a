"""Short programs that show what cppsim is for; each runs as ``python -m cppsim.examples.NAME``."""
