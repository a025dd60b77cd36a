"""`bitlane campaign`: many short runs of one circuit that differ in one thing, all of them judged.

    python -m bitlane_sim.campaigns

does the same, and `bitlane soak`, where nothing is installed: NumPy is enough, with CuPy for a GPU.
"""

from .command import add_campaign

__all__ = ["add_campaign"]
