"""Run programs on the instances of a written design, in parts if the memory is too small."""

import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from enum import Enum
from functools import partial
from threading import Lock
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import BatchError, memory_for
from ..model import Encoded, Port, Program, Words, as_words, counted, expect_program, extended
from ..netlist import FormattedValue, formatted, from_words
from .cuda import Cuda, NoGpu
from .description import BrokenOff, Description, Source
from .threads import Threads

_SHARE = 0.8
"""The share of free memory that instances may take; operands and results need some, too."""


class BatchWarning(UserWarning):
    """A batch runs on another backend or in parts, with the same results."""


class BatchSource(Protocol):
    """A design that is written for backends; ``rows`` are its memories' bytes at power-on."""

    def source(self, backend: str | None = None) -> Source:
        """Return C++ that compiles for ``backend``, or for both backends."""
        ...

    @property
    def rows(self) -> bytes: ...


class Backend(Protocol):
    """A compiled design that runs instances of it, such as `Threads`.

    ``together`` is the number of instances that share a tile, for which memory is allocated.
    """

    name: str
    together: int
    description: Description

    def free_bytes(self) -> int:
        """Return the bytes of memory that are free for instances."""
        ...

    def allocate(self, rows: NDArray[np.uint8]) -> Any:
        """Allocate one instance at power-on for each of ``rows``, the bytes of its memories."""

    def run(self, instances: Any, program: Encoded, output: Words) -> None:
        """Run ``program``; write its results to ``output``, of shape (columns, instances)."""
        ...

    def rows(self, instances: Any) -> NDArray[np.uint8]:
        """Return the bytes of all memories, as (instances, bytes)."""
        ...

    def put_rows(self, instances: Any, rows: NDArray[np.uint8]) -> None:
        """Replace the bytes of all memories."""


@runtime_checkable
class DeviceBackend(Backend, Protocol):
    """A backend with its own memory; instances that do not fit there wait in the host's memory."""

    def to_host(self, instances: Any) -> Any:
        """Copy ``instances`` to the host's memory."""

    def to_device(self, instances: Any) -> Any:
        """Copy ``instances`` from the host's memory to the device."""


class Runner:
    """``instances`` of a written design, from power-on.

    A runner needs no Amaranth: exported folders run with it. `Batch` is a runner that also has the
    design, and so records and exports. A call raises ``BatchError`` while another one runs.

    The backend ``auto`` is a GPU if there is one, else threads; a ``BatchWarning`` reports a GPU
    that fails. Raises ``BatchError``, and ``NoCompilerError`` without a compiler.

    Attributes
    ----------
    instances : int
    description : Description
    compiled : Backend
        The compiled design, which can run other instances of it, too.
    """

    def __init__(
        self,
        written: BatchSource,
        instances: int,
        backend: Backend | str = "auto",
    ) -> None:
        self.instances = counted(instances, "instances", 1)
        self.compiled = _backend(backend, written)
        self.description = self.compiled.description
        self._parts: list[tuple[int, int, Any]] = []
        """The first instance of each part, the one behind its last, and its state."""
        self._device: DeviceBackend | None = None
        """The backend, if its memory holds only one part of the instances at a time."""
        self._calls = Lock()
        self._power_on = np.frombuffer(written.rows, np.uint8)
        self._size = self._divided()
        self._allocate()

    def reset(self) -> None:
        """Return all instances to power-on: inputs, memories and cycles, also after an error."""
        with self._alone():
            self._allocate()

    def _divided(self) -> int:
        """Return the most instances of a part; a GPU with too little memory has several."""
        size = max(1, self.description.instance_bytes)
        free = int(self.compiled.free_bytes() * _SHARE)
        most = free // (size * self.compiled.together) * self.compiled.together
        if self.instances > most:
            text = f"{self.instances} instances take {_mebibytes(self.instances * size)}, and "
            text += f"{_mebibytes(free)} are free"
            if not most or not isinstance(self.compiled, DeviceBackend):
                hint = f"run {most} at a time" if most else "not even a tile has room"
                raise BatchError(f"{text}: {hint}")
            self._device = self.compiled
            parts = -(-self.instances // most)
            warnings.warn(BatchWarning(f"{text}: they run in {parts} parts"), stacklevel=4)
        return most

    def _allocate(self) -> None:
        """Allocate all instances at power-on, in place of those before."""
        self._fresh, self._whole = True, False
        self._parts.clear()
        for first in range(0, self.instances, self._size):
            end = min(first + self._size, self.instances)
            rows = np.broadcast_to(self._power_on, (end - first, self._power_on.size))
            with memory_for("the batch"):
                self._parts.append((first, end, self._unload(self.compiled.allocate(rows))))
        self._whole = True

    def _unload(self, part: Any) -> Any:
        """Make room for the next part, if there are several."""
        return self._device.to_host(part) if self._device else part

    def _load(self, part: Any) -> Any:
        """Undo `_unload`."""
        return self._device.to_device(part) if self._device else part

    @property
    def backend(self) -> str:
        """The name of the backend: ``"threads"`` or ``"cuda"``."""
        return self.compiled.name

    @property
    def ports(self) -> dict[str, int]:
        """Bits of every port, by name."""
        return {name: x.width for name, x in self.description.ports.items()}

    # --- programs -----------------------------------------------------------------------------

    def set(self, port: Port, values: ArrayLike | Enum) -> None:
        """Set an input: one number for all, or integers of shape (instances,).

        Ports are called by their names, fields of structures ``port.field``, or are the signals
        and the fields themselves. Ports of more than 64 bits also take (instances, words), the form
        that `get` returns. Raises ``BatchError`` for a port that does not exist or is not an input,
        and for arrays of another shape, type or range.
        """
        self.run(Program().set(port, values))

    def get(self, port: Port) -> NDArray[Any]:
        """Return the values of a port, as (instances,); if wider than 64 bits (instances, words).

        Words are ``uint64``, the least significant first. Values of a signed port are in two's
        complement and sign-extended to whole words.
        """
        return self.run(Program().get(port, "value"))["value"]

    def step(self, cycles: int = 1) -> None:
        """Run ``cycles`` clock cycles."""
        self.run(Program().step(cycles))

    def until(self, port: Port, limit: int) -> NDArray[np.bool_]:
        """Run to the first edge before which ``port`` is not 0, at most ``limit`` cycles.

        Return which instances got there, as (instances,); `cycles` has the cycles of each.
        """
        return np.asarray(self.run(Program().until(port, limit, "cycles"))["cycles"] != 0)

    @property
    def cycles(self) -> NDArray[Any]:
        """Cycles of each instance since power-on; in programs the port ``$cycles``."""
        return self.get("$cycles")

    def failures(self) -> dict[int, tuple[str, int]]:
        """Return the message, with its values, and the cycle of the first failed check.

        The dictionary has the instances that have failed.
        """
        program = Program().get("$failed").get("$failed_at")
        if has_values := "$failed_values" in self.ports:
            program.get("$failed_values")
        results = self.run(program)
        failures = {}
        for instance in np.flatnonzero(results["$failed"]).tolist():
            message = self.description.checks[int(results["$failed"][instance])]
            words = (
                np.atleast_1d(results["$failed_values"][instance]).tolist() if has_values else ()
            )
            text = formatted(message, _values(message, from_words(words)))
            failures[instance] = text, int(results["$failed_at"][instance])
        return failures

    def run(self, program: Program) -> dict[str, NDArray[Any]]:
        """Run ``program``; return its results by name, with instances as the first axis.

        Raises ``BrokenOff`` if it ends before all instances have finished.
        """
        expect_program(program, "run")
        named = program.named(self._name_of)
        with memory_for("the program"):
            encoded = named.encoded(self.description.ports, self.instances)
        return self.run_encoded(encoded)

    def _name_of(self, port: Any) -> str:
        """Return the name of a port. Raises ``BatchError`` for anything but a name."""
        if not isinstance(port, str):
            raise BatchError(f"port {port!r}: a batch without its design takes names")
        return port

    def run_encoded(self, program: Encoded) -> dict[str, NDArray[Any]]:
        """Run a program that is already encoded; see `run`."""
        with self._alone():
            return self._run_encoded(program)

    def _run_encoded(self, program: Encoded) -> dict[str, NDArray[Any]]:
        if not self._whole:
            raise BatchError("an earlier run broke off; call reset, or make a new batch")
        with memory_for("the result of the program"):
            output = np.zeros((program.columns, self.instances), np.uint64)
        done, reason = np.zeros(self.instances, np.bool_), ""
        self._fresh = False
        for number, (first, end, stored) in enumerate(self._parts):
            try:
                part = self._load(stored)
                own = replace(program, input=program.input[:, first:end])
                self.compiled.run(part, own, output[:, first:end])
                self._parts[number] = first, end, self._unload(part)
            except BatchError as error:
                reason = reason or str(error)
            else:
                done[first:end] = True
        self._whole = not reason
        results = {result.name: result.taken(output) for result in program.results}
        if reason:
            through = f"; the error has results of {done.sum()} of {self.instances} instances"
            raise BrokenOff(f"{reason}{through if done.any() else ''}", done, results)
        return results

    # --- memories -----------------------------------------------------------------------------

    def memory(self, name: str) -> NDArray[Any]:
        """Return a memory as (instances, rows); if wider than 64 bits (instances, rows, words).

        Rows of signed memories are ``int64``, or words as `get` returns them.
        """
        layout = self.description.memory(name)
        rows = self.all_rows()[:, layout.offset : layout.offset + layout.bytes]
        elements = np.ascontiguousarray(rows).view(f"<u{layout.element // 8}").astype(np.uint64)
        words = elements.reshape(self.instances, layout.depth, layout.count)
        if layout.signed:
            words[..., -1] = extended(words[..., -1], layout.width, signed=True)
        if layout.count > 1:
            return words
        return words[..., 0].view(np.int64) if layout.signed else words[..., 0]

    def set_memory(self, name: str, values: ArrayLike) -> None:
        """Replace a memory by an array of the form that `memory` returns, or by one for all.

        Rows of more than 64 bits are words or whole numbers, as for `set`.
        """
        layout = self.description.memory(name)
        rows_of = (self.instances, layout.depth)
        words = as_words(layout, values, [rows_of, rows_of[1:]]).astype(np.uint64)
        words[..., -1] &= np.uint64((1 << layout.width - 64 * (layout.count - 1)) - 1)
        whole = np.broadcast_to(words, (*rows_of, layout.count))
        elements = whole.astype(f"<u{layout.element // 8}", "C")
        content = elements.reshape(self.instances, -1).view(np.uint8)
        with self._alone():
            rows = self._rows().copy()
            rows[:, layout.offset : layout.offset + layout.bytes] = content
            self._put_rows(rows)

    def all_rows(self) -> NDArray[np.uint8]:
        """Return the bytes of all memories, as (instances, bytes)."""
        with self._alone():
            return self._rows()

    def put_all_rows(self, rows: NDArray[np.uint8]) -> None:
        """Replace the bytes of all memories."""
        with self._alone():
            self._put_rows(rows)

    def _rows(self) -> NDArray[np.uint8]:
        return np.concatenate([self.compiled.rows(self._load(part)) for *_, part in self._parts])

    def _put_rows(self, rows: NDArray[np.uint8]) -> None:
        for number, (first, end, stored) in enumerate(self._parts):
            part = self._load(stored)
            self.compiled.put_rows(part, rows[first:end])
            self._parts[number] = first, end, self._unload(part)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Raise ``BatchError`` if another call is running."""
        if not self._calls.acquire(blocking=False):
            raise BatchError("the batch is running in another call: wait until that has returned")
        try:
            yield
        finally:
            self._calls.release()

    @property
    def fresh(self) -> bool:
        """Whether no program has run."""
        return self._fresh


def _backend(chosen: Backend | str, written: BatchSource) -> Backend:
    if not isinstance(chosen, str) and hasattr(chosen, "allocate"):
        return chosen
    if chosen == "auto":
        try:
            return Cuda(partial(written.source, "cuda"))
        except NoGpu:
            pass
        except BatchError as error:
            warnings.warn(BatchWarning(f"on threads, for {error}"), stacklevel=4)
        chosen = "threads"
    if chosen == "cuda":
        return Cuda(partial(written.source, "cuda"))
    threads = re.fullmatch(r"threads(?::(\d+))?", chosen) if isinstance(chosen, str) else None
    if threads is None:
        raise BatchError(f"no backend {chosen!r}; there are: auto, threads, threads:NUMBER, cuda")
    return Threads(written.source("threads"), int(threads[1]) if threads[1] else None)


def _values(message: Sequence[str | FormattedValue], packed: int) -> Iterator[int]:
    """Yield the values of ``message``, which lie one behind the other in ``packed``."""
    for part in message:
        if not isinstance(part, str):
            yield packed & (1 << part.width) - 1
            packed >>= part.width


def _mebibytes(size: int) -> str:
    return f"{size / (1 << 20):.1f} MiB"
