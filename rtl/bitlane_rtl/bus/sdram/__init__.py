"""Single-data-rate SDRAM behind the engine's memory ports. `memory.SdramMemory` is the whole."""
