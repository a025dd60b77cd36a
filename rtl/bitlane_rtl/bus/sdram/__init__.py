"""A controller for single-data-rate SDRAM. `memory.SdramMemory` is its top component."""
