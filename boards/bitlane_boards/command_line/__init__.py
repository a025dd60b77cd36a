"""The subcommands for boards and FPGA tools. They only read words and print answers."""

from .common import add_addresses, add_board, addressed, progress_of

__all__ = ["add_addresses", "add_board", "addressed", "progress_of"]
