"""Text, trace and report of the commands of a run and of its recorded bus traffic."""
