"""The engine with what a recorder asks about its commands, beside what it is built of."""

from amaranth.hdl import Module, Signal

from bitlane_rtl.abi import Status
from bitlane_rtl.configuration import Configuration
from bitlane_rtl.engine import Engine

__all__ = ["WatchedEngine"]


class WatchedEngine(Engine):
    """An `Engine` into which others of the same circuit may look.

    Attributes
    ----------
    started, retired, faulted : Signal
        In this cycle a command goes to the data path; RETIRED changes; FAULT changes.
    """

    def __init__(self, configuration: Configuration) -> None:
        super().__init__(configuration)
        self.started, self.retired, self.faulted = Signal(), Signal(), Signal()

    @property
    def events(self) -> tuple[Signal, Signal, Signal]:
        return self.started, self.retired, self.faulted

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        commands, completions = m.submodules.sequencer.o, m.submodules.completions
        m.d.comb += [
            self.started.eq(commands.valid & commands.ready),
            self.retired.eq(completions.write & (completions.status == Status.OK)),
            self.faulted.eq(completions.write & (completions.status != Status.OK)),
        ]
        return m
