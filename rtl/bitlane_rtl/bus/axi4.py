"""AXI4 (ARM IHI 0022) for the engine's memory ports: the signature, and adapters.

The adapters consist of wires only. A burst on AXI4 is the native port's burst, and `ports`
guarantees its legality: it does not cross 4 KiB, and ``valid`` stays until ``ready``.
"""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from ..ports import ReadPort, WritePort

__all__ = ["Axi4", "Axi4ReadManager", "Axi4WriteManager", "join_channels"]

BURST_INCR = 0b01
"""INCR: addresses of consecutive beats differ by the beat's size (A3.4.1)."""

PROT = 0b000
"""Unprivileged, secure, data access (A4.7), for memories without a protection unit."""

CACHE = 0b0010
"""Normal Non-cacheable Non-bufferable (A4.4). Modifiable, so that interconnects may split bursts
and convert widths. Not bufferable, so that a write response comes from the memory itself and the
result of a retired command is visible to every other manager."""


class Axi4(wiring.Signature):
    """Signature of an AXI4 bus without identifiers, seen from the manager.

    Parameters
    ----------
    address_width
        Bits of ``awaddr`` and ``araddr``.
    data_width
        Bits of ``wdata`` and ``rdata``.
    read, write
        Include the read channels (AR, R), the write channels (AW, W, B).

    Members
    -------
    The signals of AXI4 in lower case, without a prefix: ``awaddr``, ``awlen`` and so on. Optional
    signals with a default value (IDs, LOCK, QOS, REGION, USER; A10.3) are left out.
    """

    def __init__(
        self, address_width: int, data_width: int, *, read: bool = True, write: bool = True
    ) -> None:
        members: dict[str, wiring.Member] = {}
        if write:
            members |= _address_channel("aw", address_width)
            members |= {
                "wdata": Out(data_width),
                "wstrb": Out(data_width // 8),
                "wlast": Out(1),
                "wvalid": Out(1),
                "wready": In(1),
                "bresp": In(2),
                "bvalid": In(1),
                "bready": Out(1),
            }
        if read:
            members |= _address_channel("ar", address_width)
            members |= {
                "rdata": In(data_width),
                "rresp": In(2),
                "rlast": In(1),
                "rvalid": In(1),
                "rready": Out(1),
            }
        super().__init__(members)
        channels = "" if read and write else f", {read=}, {write=}"
        self._text = f"Axi4({address_width}, {data_width}{channels})"

    def __repr__(self) -> str:
        return self._text


def _address_channel(prefix: str, address_width: int) -> dict[str, wiring.Member]:
    return {
        f"{prefix}addr": Out(address_width),
        f"{prefix}len": Out(8),
        f"{prefix}size": Out(3),
        f"{prefix}burst": Out(2),
        f"{prefix}prot": Out(3),
        f"{prefix}cache": Out(4),
        f"{prefix}valid": Out(1),
        f"{prefix}ready": In(1),
    }


class Axi4ReadManager(wiring.Component):
    """An adapter from a native read port to AR and R.

    Members
    -------
    port
        The native port.
    axi
        The channels AR and R.

    Latency: 0 cycles each way. Throughput: that of the bus. Area: none.
    SLVERR and DECERR become ``error`` (A3.4.4). EXOKAY, which a manager without LOCK cannot
    receive, counts as OKAY. Undefined: responses without a request.
    """

    def __init__(self, address_width: int, data_width: int) -> None:
        self._size = ceil_log2(data_width // 8)
        super().__init__(
            {
                "port": In(ReadPort(address_width, data_width)),
                "axi": Out(Axi4(address_width, data_width, write=False)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        request, beat, axi = self.port.request, self.port.data, self.axi
        m.d.comb += [
            axi.araddr.eq(request.payload.address),
            axi.arlen.eq(request.payload.length),
            axi.arsize.eq(self._size),
            axi.arburst.eq(BURST_INCR),
            axi.arprot.eq(PROT),
            axi.arcache.eq(CACHE),
            axi.arvalid.eq(request.valid),
            request.ready.eq(axi.arready),
            beat.payload.data.eq(axi.rdata),
            beat.payload.last.eq(axi.rlast),
            beat.payload.error.eq(axi.rresp[1]),
            beat.valid.eq(axi.rvalid),
            axi.rready.eq(beat.ready),
        ]
        return m


class Axi4WriteManager(wiring.Component):
    """An adapter from a native write port to AW, W and B.

    Members
    -------
    port
        The native port.
    axi
        The channels AW, W and B.

    Latency: 0 cycles each way. Throughput: that of the bus. Area: none.
    SLVERR and DECERR become an error response (A3.4.4). Undefined: responses without a request.
    """

    def __init__(self, address_width: int, data_width: int) -> None:
        self._size = ceil_log2(data_width // 8)
        super().__init__(
            {
                "port": In(WritePort(address_width, data_width)),
                "axi": Out(Axi4(address_width, data_width, read=False)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        request, beat, axi = self.port.request, self.port.data, self.axi
        m.d.comb += [
            axi.awaddr.eq(request.payload.address),
            axi.awlen.eq(request.payload.length),
            axi.awsize.eq(self._size),
            axi.awburst.eq(BURST_INCR),
            axi.awprot.eq(PROT),
            axi.awcache.eq(CACHE),
            axi.awvalid.eq(request.valid),
            request.ready.eq(axi.awready),
            axi.wdata.eq(beat.payload.data),
            axi.wstrb.eq(beat.payload.strobe),
            axi.wlast.eq(beat.payload.last),
            axi.wvalid.eq(beat.valid),
            beat.ready.eq(axi.wready),
            self.port.response.payload.eq(axi.bresp[1]),
            self.port.response.valid.eq(axi.bvalid),
            axi.bready.eq(self.port.response.ready),
        ]
        return m


def join_channels(m: Module, part: wiring.PureInterface, whole: wiring.PureInterface) -> None:
    """Connect the read or write channels of a manager to a bus that has more channels.

    ``part`` is the ``axi`` of an adapter above, ``whole`` a member ``Out(Axi4(...))`` of the
    component whose module is ``m``.
    """
    for name, member in part.signature.members.items():
        inner, outer = getattr(part, name), getattr(whole, name)
        m.d.comb += outer.eq(inner) if member.flow == Out else inner.eq(outer)
