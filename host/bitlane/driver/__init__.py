"""A device over its link: registers, memory, and a ring of commands. Never sees a data type."""
