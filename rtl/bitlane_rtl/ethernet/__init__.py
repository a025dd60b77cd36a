"""From a gigabit PHY's pins to datagrams, and back."""
