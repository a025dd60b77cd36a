"""The stream buffers between the units of the data path, chosen by the configuration.

The first beat of a command in a circuit of 64-bit beats, by the cycles after its start::

    0  loop nest -> steps                               SkidBuffer
    1  address generator -> splitter
    2  burst -> requests                                SkidBuffer
    3  request on the port
    4  beat -> byte network -> moved                    ForwardRegister
    5  realigner -> words                               TwoWriteFifo, credit by bursts
    7  pairing, bit unit
   10  decode -> results                                Fifo, credit by beats
   11  repack
   12  outputs -> writer -> beats                       ReverseRegister, SkidBuffer
   13  beat on the port

Beside it, ``work`` carries the operation to the pairing, and ``spans`` and ``bursts`` carry the
runs of the output to the writer, ahead of the data.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from amaranth.hdl import ShapeLike

from ..configuration import Configuration
from ..streams import (
    Fifo,
    ForwardRegister,
    HalfRateRegister,
    PingPongBuffer,
    ReverseRegister,
    SkidBuffer,
    Stage,
    TwoWriteFifo,
    Wire,
)

__all__ = ["RESULTS", "Stages", "has_credit", "stages"]

RESULTS = 16
"""Results in flight in the bit unit and behind it, if credits limit them."""


class Stages(NamedTuple):
    """A buffer for each connection of the data path."""

    steps: Stage
    """Steps of the loop nest, to each stream. Half the rate is enough for commands of a single run:
    they have one step each, and start every third cycle at most."""
    requests: Stage
    """Requests of a reader. Bursts of a single run have many beats and are requested early."""
    moved: Stage
    """Behind the byte network. At 32 bits a `Wire`: the network's two steps fit into the cycle, and
    a register would exceed the N + 12 cycles of a short command."""
    words: Callable[[ShapeLike], Fifo | TwoWriteFifo]
    """Beats of an operand. Rows of few beats are worth a second write port of the FIFO, but not
    twice the block RAMs."""
    work: Stage
    """Operations of commands, to the pairing."""
    operands: Stage
    """Between an operand's FIFO and the pairing."""
    results: Stage
    """Results of the bit unit."""
    outputs: Stage
    """Beats to the writer. A `ReverseRegister`, because ``ready`` of the writer depends on the
    elements that it scatters, and would reach all of repack."""
    found: Stage
    """Results of a search. A `Fifo`, because ``ready`` of the writer would reach the search array,
    which is spread over the die."""
    spans: Stage
    """Spans of the output."""
    bursts: Stage
    """Bursts of the output. A buffer, because whether an element was the last of its beat would
    reach ``spans``. At 32 bits a `PingPongBuffer`, because whether a beat fires is valid late; at
    64 bits its multiplexer would take more time than it saves, in front of the scattered bytes."""
    write_requests: Stage
    """Requests of the writer."""
    beats: Stage
    """Beats of the writer, to the port. With single runs ``ready`` of the port reaches few gates,
    and a `ForwardRegister` saves a multiplexer for each bit."""


def stages(config: Configuration) -> Stages:
    """Return the buffers of a configuration."""
    narrow = config.data_width < 64 or config.single_runs
    results: Stage = Wire if config.single_runs and config.single_op is not None else SkidBuffer
    if has_credit(config):
        results = partial(Fifo, depth=RESULTS, credit=True)
    words: Callable[[ShapeLike], Fifo | TwoWriteFifo] = partial(
        TwoWriteFifo, depth=config.fifo_beats
    )
    if narrow or config.block_ram:
        words = partial(
            Fifo,
            depth=config.fifo_beats,
            block_ram=config.block_ram,
            registered=not narrow,
            credit=True,
        )
    # Half the registers, at half the rate, where a command has a single run.
    slices: Stage = HalfRateRegister if config.single_runs else SkidBuffer
    return Stages(
        steps=slices,
        requests=slices,
        moved=Wire if narrow else ForwardRegister,
        words=words,
        work=partial(Fifo, depth=config.ahead, registered=True),
        operands=SkidBuffer if config.operand_registers else Wire,
        results=results,
        outputs=Wire if config.single_op is not None else ReverseRegister,
        found=partial(Fifo, depth=4),
        spans=partial(Fifo, depth=config.ahead, registered=True),
        bursts=PingPongBuffer if config.data_width < 64 and not config.single_runs else slices,
        write_requests=slices,
        beats=ForwardRegister if config.single_runs else SkidBuffer,
    )


def has_credit(config: Configuration) -> bool:
    """Return whether operands are sent only while there is room for their results.

    Then no ``ready`` runs back through the bit unit. The results wait in LUT RAM.
    """
    return not config.block_ram and config.single_op is None
