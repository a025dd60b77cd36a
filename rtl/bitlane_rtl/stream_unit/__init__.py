"""The bit unit between streams of packets, without memory or commands: see `unit`."""
