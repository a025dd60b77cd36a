"""Campaigns: many runs of the simulated system, each with its own data, timing and faults.

`bitlane campaign` runs one circuit many times, with one difference each. `bitlane soak` runs random
commands, faults and stalls on random circuits. Every run follows from its number or seed, so that
a failure can be replayed alone, with waveforms.

    python -m bitlane_sim.campaigns

offers both subcommands where bitlane is not installed: NumPy is enough, with CuPy for a GPU.

harness             the circuit, and one instance of it with waveforms; needs Amaranth
folder              the circuit as text in a folder, so that another machine can run it
stimulus            the program of an instance: its commands and what disturbs them
arrays              types, counts and random numbers of many instances
contract            the results that the contract demands, for all instances at once
scoreboard          compares them with what the instances did
faults, records, stalls     the campaigns of `bitlane campaign`
trials, mixed, device_run   random cases of `bitlane soak`, many at once or through the driver
"""

from .command import add_campaign, add_soak

__all__ = ["add_campaign", "add_soak"]
