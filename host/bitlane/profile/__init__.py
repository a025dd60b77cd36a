"""Text, trace and report of the commands of a run and of its recorded bus traffic.

The modules of the report are not imported here, because they need Bokeh.
"""

from .activity import (
    RecordedBurst,
    RecordedCommand,
    RecordedPort,
    RecordedStall,
    bursts,
    busy_cycles,
    busy_spans,
    ports,
    recorded_commands,
    stalls,
)
from .disassembly import command_text, disassemble, geometry_text, lower_model
from .perfetto import write_trace
from .profile import RunProfile

__all__ = [
    "RecordedBurst",
    "RecordedCommand",
    "RecordedPort",
    "RecordedStall",
    "RunProfile",
    "bursts",
    "busy_cycles",
    "busy_spans",
    "command_text",
    "disassemble",
    "geometry_text",
    "lower_model",
    "ports",
    "recorded_commands",
    "stalls",
    "write_trace",
]
