"""From a gigabit PHY's pins to datagrams, and back.

Only plain data is imported here: boards are listed where Amaranth is not installed.
"""

from ..board_addresses import BoardAddresses

__all__ = ["BoardAddresses"]
