"""The exported C driver, compiled and called from Python on a core that Python models."""

import ctypes
import random
from collections.abc import Callable, Sequence
from pathlib import Path

from bitlane.driver import Command, Walk
from bitlane_rtl.abi import MAX_LOOPS, RECORD_WORDS, Lane, Mode, Op
from bitlane_rtl.configurations import small
from bitlane_sim.export import integrator_files
from support.processes import C, succeed
from support.rtl.records import Task
from support.rtl.walks import OPERAND_MODES
from support.rtl.walks import Walk as Way

FLAGS = ("-std=c99", "-ffreestanding", "-Wall", "-Wextra", "-Werror", "-pedantic")

RESULTS = ("DONE", "BUSY", "LATE", "STOPPED", "NO_CORE", "BAD_COMMAND")

_PLATFORM = """\
#include <stdint.h>
extern uint32_t (*core_read)(uint32_t offset);
extern void (*core_write)(uint32_t offset, uint32_t value);
#define BITLANE_READ(address) core_read((uint32_t)(address))
#define BITLANE_WRITE(address, value) core_write((uint32_t)(address), value)
"""

_POINTERS = """\
#include "platform.h"
uint32_t (*core_read)(uint32_t offset);
void (*core_write)(uint32_t offset, uint32_t value);
"""

_Read = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_uint32)
_Write = ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_uint32)


class _Core(ctypes.Structure):
    _fields_ = (
        ("window", ctypes.c_size_t),
        *((x, ctypes.c_uint32) for x in ("slots", "submitted", "retired", "fault")),
        ("fault_address", ctypes.c_uint32),
        ("looks", ctypes.c_uint32),
    )


class _Walk(ctypes.Structure):
    _fields_ = (
        *((x, ctypes.c_uint32) for x in ("base", "last", "mode")),
        ("stride", ctypes.c_int32),
        ("jumps", ctypes.c_int32 * (MAX_LOOPS - 1)),
    )


class _Command(ctypes.Structure):
    _fields_ = (
        *((x, ctypes.c_uint32) for x in ("op", "lane", "out_lane", "saturate", "arithmetic")),
        *((x, ctypes.c_uint32) for x in ("fence", "interrupt", "test", "negate", "run", "loops")),
        ("counts", ctypes.c_uint32 * (MAX_LOOPS - 1)),
        *((x, _Walk) for x in ("a", "b", "y")),
    )


def sources(folder: Path) -> None:
    """Write into ``folder`` the files of `bitlane export --folder`, but for the module."""
    for name, text in integrator_files(small(), "core", "bitlane export").items():
        (folder / name).write_text(text, encoding="utf-8")


def compiled(folder: Path, *programs: str) -> Path:
    """Compile the exported driver into a shared library in ``folder``, and return its path.

    ``programs``: more C files of ``folder`` to compile into it.
    """
    sources(folder)
    (folder / "platform.h").write_text(_PLATFORM)
    (folder / "pointers.c").write_text(_POINTERS)
    flags = [*FLAGS, "-O1", "-shared", "-fPIC", '-DBITLANE_PLATFORM="platform.h"']
    files = ("bitlane.c", "pointers.c", *programs)
    succeed(*C, *flags, *files, "-o", "driver.so", cwd=folder)
    return folder / "driver.so"


class CDriver:
    """The driver in ``library`` on a core whose control window is ``read`` and ``write``.

    Its methods call the functions of bitlane.h, and return the names of their results.
    """

    def __init__(
        self, library: Path, read: Callable[[int], int], write: Callable[[int, int], None]
    ) -> None:
        self._library = ctypes.CDLL(str(library))
        self._raised: list[Exception] = []
        # C has only the addresses of the callbacks: this reference keeps them alive.
        self._callbacks = _Read(self._kept(read)), _Write(self._kept(write))
        for name, callback in zip(("core_read", "core_write"), self._callbacks, strict=True):
            place = ctypes.c_void_p.in_dll(self._library, name)
            place.value = ctypes.cast(callback, ctypes.c_void_p).value
        self.core = _Core()

    def _kept(self, function: Callable[..., int | None]) -> Callable[..., int]:
        """Return ``function`` as a callback; `call` raises its exceptions after C has returned."""

        def call(*arguments: int) -> int:
            try:
                return function(*arguments) or 0
            except Exception as error:  # noqa: BLE001 - C knows none
                self._raised.append(error)
                return 0

        return call

    def call(self, name: str, *arguments: object) -> int:
        """Call the function ``name`` with the core and ``arguments``; return its result."""
        return self.call_alone(name, ctypes.byref(self.core), *arguments)

    def call_alone(self, name: str, *arguments: object) -> int:
        """Call the function ``name`` with ``arguments`` alone; return its result."""
        result: int = getattr(self._library, name)(*arguments)
        if self._raised:
            raise self._raised[0]
        return result

    def _call(self, name: str, *arguments: object) -> int:
        return self.call(f"bitlane_{name}", *arguments)

    def open(self) -> str:
        return RESULTS[self._call("open", ctypes.c_size_t(0))]

    def submit(self, command: Command, *, interrupt: bool = False, **changes: int) -> str:
        """Submit a command; ``changes`` replaces members of its C structure."""
        told = _c_command(command, interrupt)
        for name, value in changes.items():
            setattr(told, name, value)
        return RESULTS[self._call("submit", ctypes.byref(told))]

    def submit_dense(self, op: Op, size: int, places: Sequence[int]) -> str:
        """Submit a command of bitlane_dense() and bitlane_place(); ``places`` are Y, A and B."""
        command = _Command()
        ctypes.memset(ctypes.byref(command), 0xAA, ctypes.sizeof(command))
        self._library.bitlane_dense(ctypes.byref(command), int(op), size)
        self._library.bitlane_place(ctypes.byref(command), *places)
        return RESULTS[self._call("submit", ctypes.byref(command))]

    def look(self) -> str:
        return RESULTS[self._call("look")]

    def wait(self, ticks: int) -> str:
        return RESULTS[self._call("wait", ctypes.c_uint32(ticks))]

    def clear(self, ticks: int) -> str:
        return RESULTS[self._call("clear", ctypes.c_uint32(ticks))]

    def interrupt(self, enable: bool) -> None:
        self._call("interrupt", int(enable))

    def acknowledge(self) -> bool:
        return bool(self._call("acknowledge"))

    def encode(self, command: Command, *, interrupt: bool = False) -> bytes:
        """Return the bytes of the words that bitlane_encode() reports as used."""
        words = (ctypes.c_uint32 * RECORD_WORDS)(*[0xEEEEEEEE] * RECORD_WORDS)
        count = self._library.bitlane_encode(ctypes.byref(_c_command(command, interrupt)), words)
        return bytes(words)[: 4 * count]


def _c_command(command: Command, interrupt: bool) -> _Command:
    result = _Command()
    # Members that are not set hold rubbish, which must not matter.
    ctypes.memset(ctypes.byref(result), 0xAA, ctypes.sizeof(result))
    names = ("op", "lane", "out_lane", "saturate", "arithmetic", "test", "negate", "fence")
    for name in (*names, "run", "loops"):
        setattr(result, name, int(getattr(command, name)))
    result.interrupt = int(interrupt)
    for number, count in enumerate(command.counts[: MAX_LOOPS - 1]):
        result.counts[number] = count
    for name in ("a", "b", "y"):
        walk: Walk | None = getattr(command, name)
        if walk is None:
            continue
        target = getattr(result, name)
        target.base, target.last, target.mode = walk.base, walk.last, int(walk.mode)
        target.stride = walk.stride
        for number, jump in enumerate(walk.jumps[: MAX_LOOPS - 1]):
            target.jumps[number] = jump
    return result


def command_of(task: Task) -> Command:
    """Return ``task`` as a command of the host's driver."""

    def walk(way: Way) -> Walk:
        stride = way.steps[0] if way.mode is Mode.STRIDED else 0
        return Walk(way.base, max(way.bytes()), way.mode, stride, tuple(way.jumps()))

    return Command(
        task.op,
        task.a.lane,
        task.y.lane,
        task.a.counts[0],
        walk(task.a),
        None if task.b is None else walk(task.b),
        walk(task.y),
        tuple(task.a.counts[1:]),
        task.saturate,
        task.arithmetic,
        task.test,
        task.negate,
        task.fence,
    )


def random_command(generator: random.Random) -> Command:
    """Return any command that fits a record, whether or not a circuit accepts it."""
    op = generator.choice(list(Op))
    loops = generator.randint(1, MAX_LOOPS)

    def walk(modes: Sequence[Mode]) -> Walk:
        mode = generator.choice(modes)
        base, last = generator.getrandbits(32), generator.getrandbits(32)
        # An unused stride must not show.
        stride, *jumps = [_signed(generator) for _ in range(loops)]
        return Walk(base, last, mode, stride, tuple(jumps))

    flags = [generator.random() < 0.5 for _ in range(5)]
    return Command(
        op,
        generator.choice(list(Lane)),
        generator.choice(list(Lane)),
        generator.getrandbits(32),
        walk(OPERAND_MODES),
        walk(OPERAND_MODES) if op.reads_b else None,
        walk((Mode.DENSE, Mode.STRIDED, Mode.SUM)),
        tuple(generator.getrandbits(32) for _ in range(loops - 1)),
        *flags,
    )


def _signed(generator: random.Random) -> int:
    return generator.getrandbits(32) - (1 << 31)
