"""Waveforms of a model, which native code writes to a VCD file: a sample holds the changes.

This module knows words in memory and a file after its header. `simulator` begins the files of
`cppsim.Simulator`, and `model` those of `cppsim.Model`.
"""

import codecs
import contextlib
import ctypes
import io
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import IO, Any

from ..compiling import Signatures, bind
from ..cpp import BitField
from ..native import BUILDER, InstanceHandle
from ..netlist import from_words, word_count

_LONGEST_ENDING = 8


class BackwardsError(ValueError):
    """A sample is of an earlier time than the one before it."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of the file, and where its bits are.

    ``render``, if given, has for its value the line of the file without its end; else that is
    binary. ``fleeting`` says that it may give two lines for one value. A bit in no field is 0.
    """

    code: str
    width: int
    fields: Sequence[BitField]
    render: Callable[[int], str] | None = None
    fleeting: bool = False


class Areas:
    """Areas of memory as one row of words of 64 bits, little end first."""

    def __init__(self) -> None:
        self.parts: list[tuple[memoryview, int]] = []
        self._words = 0

    def add(self, area: memoryview) -> int:
        """The number of the first word of ``area``, which can be written to by others."""
        first = self._words
        self.parts.append((area, first))
        self._words += -(-area.nbytes // 8)
        return first


class _Area(ctypes.Structure):
    _fields_ = (("content", ctypes.c_void_p), ("size", ctypes.c_size_t), ("first", ctypes.c_size_t))


class _Variable(ctypes.Structure):
    _fields_ = (
        ("ending", ctypes.c_char * _LONGEST_ENDING),
        ("ending_size", ctypes.c_uint32),
        ("width", ctypes.c_uint32),
        ("kind", ctypes.c_uint32),
    )


class _Part(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_uint32) for name in ("variable", "word", "shift", "low", "width")
    )


_ADDRESS, _NUMBER, _SIZE = ctypes.c_void_p, ctypes.c_uint64, ctypes.c_size_t

_SIGNATURES: Signatures = {
    "waves_create": (_ADDRESS, (_ADDRESS,) * 2 + (_ADDRESS, _SIZE) * 3),
    "waves_destroy": (None, (_ADDRESS,)),
    "waves_sample": (ctypes.c_int, (_ADDRESS, _NUMBER)),
    "waves_count_from": (None, (_ADDRESS, _NUMBER, _NUMBER)),
    "waves_add": (ctypes.c_int, (_ADDRESS, _NUMBER, ctypes.c_char_p, _SIZE)),
    "waves_line": (None, (_ADDRESS, ctypes.c_char_p, _SIZE)),
    "waves_note": (ctypes.c_int, (_ADDRESS,)),
    "waves_flush": (ctypes.c_int, (_ADDRESS,)),
    "waves_failed": (ctypes.c_int, (_ADDRESS,)),
}

_FAILED, _DONE, _BACKWARDS = range(3)
"""Answers of calls from and to the library; not ``_DONE`` where Python drops an exception."""

_Write = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t)
_Render = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint32, ctypes.POINTER(ctypes.c_uint64))


class _Callbacks(ctypes.Structure):
    _fields_ = (
        ("write", _Write),
        ("render", _Render),
        ("held", ctypes.c_void_p),
        ("interrupted", ctypes.c_void_p),
    )


# Before Python's own are called, which cannot catch what a signal raises as they begin.
_HELD, _INTERRUPTED = (
    ctypes.cast(function, ctypes.c_void_p)
    for function in (ctypes.pythonapi.PyGILState_Check, ctypes.pythonapi.PyErr_CheckSignals)
)


class Waves:
    """Records a model's variables in ``file``, after a header.

    The first sample has every variable, and each one after it those that have changed.

    Parameters
    ----------
    model
        Is settled before each sample. What owns it must stay alive.
    areas
        Where the variables' words are.
    variables
        No two of the same code.
    file
        Text for it is held back in memory, and handed over in whole samples.
    begin
        Writes the header, before the first of them.

    Attributes
    ----------
    handle, take
        For native code that moves the model on: an argument, and the function that takes a sample.
        Time counts from the last `count_from`.
    whole : bool
        No call has failed.
    attended : bool
        A subclass samples further variables in Python.
    """

    attended = False

    def __init__(
        self,
        model: InstanceHandle,
        areas: Areas,
        variables: Sequence[Variable],
        file: IO[str],
        begin: Callable[[], object] = lambda: None,
    ) -> None:
        self._alive = (model, areas)
        self._variables = variables
        self._append, self._begin = _appender(file), begin
        self._begun = False
        self._error: BaseException | None = None
        self._lost, self.whole = False, True
        self._epoch = 0
        self._callbacks = _Callbacks(
            _Write(self._write), _Render(self._render), _HELD, _INTERRUPTED
        )
        self._library = library = waves()
        self.take = ctypes.cast(library.waves_sample, ctypes.c_void_p)
        spans = [_Area(_address(area), area.nbytes, first) for area, first in areas.parts]
        parts = [
            _Part(number, field.word, field.shift, field.low, field.width)
            for number, variable in enumerate(variables)
            for field in variable.fields
        ]
        self.handle: int = library.waves_create(
            ctypes.byref(model),
            ctypes.byref(self._callbacks),
            *_array(_Area, spans),
            *_array(_Variable, [_described(x) for x in variables]),
            *_array(_Part, parts),
        )

    def __del__(self) -> None:
        if getattr(self, "handle", None):
            self._library.waves_destroy(self.handle)

    def sample(self, femtoseconds: int) -> None:
        """Record the changes until now, the end of a time step.

        Raises what the file or a variable's ``render`` raises, and ``BackwardsError``.
        """
        self._library.waves_sample(self.handle, self._passed(femtoseconds))
        self.check()

    def add(self, femtoseconds: int, lines: str) -> None:
        """Take down lines of the file that were made elsewhere. Raises as `sample` does."""
        text = lines.encode()
        self._library.waves_add(self.handle, self._passed(femtoseconds), text, len(text))
        self.check()

    def note(self) -> None:
        """Take the first sample, of time 0, which the header of the file shows.

        Raises what a variable's ``render`` raises.
        """
        self._library.waves_note(self.handle)
        self.check()

    def count_from(self, femtoseconds: int) -> None:
        """Let native code's times, of 64 bits, be what has passed since then."""
        self._epoch = femtoseconds
        self._library.waves_count_from(self.handle, *divmod(femtoseconds, 1 << 64))

    def check(self) -> None:
        """Raise the exception that made the last call fail."""
        if self._library.waves_failed(self.handle):
            self.whole = False
            error, self._error = self._error, None
            if error is None and self._library.waves_failed(self.handle) == _BACKWARDS:
                error = BackwardsError("time went backwards")
            # Python has dropped what came as it began a call, which an interrupt alone does.
            raise error or KeyboardInterrupt

    def flush(self) -> bool:
        """Hand over all that the file has not got, if it still takes anything; whether it does.

        Raises what the file raises.
        """
        if not self._lost:
            self._library.waves_flush(self.handle)
            self.check()
        return not self._lost

    def _passed(self, femtoseconds: int) -> int:
        if not 0 <= femtoseconds - self._epoch < 1 << 64:
            self.count_from(femtoseconds)
        return femtoseconds - self._epoch

    # --- called by the library, through which no exception may pass ------------------------------

    def _write(self, text: int, size: int) -> int:
        try:
            if not self._begun:
                self._begin()
                self._begun = True
            self._append(memoryview((ctypes.c_char * size).from_address(text)).cast("B"))
        except BaseException as error:  # noqa: BLE001
            self._error = error
            self._lost = isinstance(error, Exception)
            return _FAILED
        return _DONE

    def _render(self, number: int, words: Any) -> int:
        variable = self._variables[number]
        assert variable.render is not None
        try:
            value = from_words(words[: word_count(variable.width)])
            line = f"{variable.render(value)}\n".encode()
        except BaseException as error:  # noqa: BLE001
            self._error = error
            return _FAILED
        self._library.waves_line(self.handle, line, len(line))
        return _DONE


def _address(area: memoryview) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(area)) if area.nbytes else 0


def _described(variable: Variable) -> _Variable:
    blank = b"" if variable.width == 1 else b" "
    ending = blank + variable.code.encode() + b"\n"
    assert len(ending) <= _LONGEST_ENDING
    kind = 0 if variable.render is None else 2 if variable.fleeting else 1
    return _Variable(ending, len(ending), variable.width, kind)


def _array(kind: Any, items: Sequence[Any]) -> tuple[Any, int]:
    return (kind * len(items))(*items), len(items)


def _appender(file: IO[str]) -> Callable[[memoryview], object]:
    """Return a function that appends UTF-8 to ``file``, directly if it is a file of the system."""
    straight = (
        type(file) is io.TextIOWrapper
        and type(file.buffer) is io.BufferedWriter
        and type(file.buffer.raw) is io.FileIO
        and codecs.lookup(file.encoding).name == "utf-8"
    )
    if straight:
        return lambda text: _append(file, text)
    return lambda text: file.write(str(text, "utf-8"))


def _append(file: IO[str], text: memoryview) -> None:
    """Append all of ``text``, or nothing."""
    file.flush()
    descriptor, done = file.fileno(), 0
    try:
        while done < len(text):
            done += os.write(descriptor, text[done:])
    except BaseException:
        with contextlib.suppress(OSError):  # not a file on a disk
            os.ftruncate(descriptor, os.lseek(descriptor, -done, os.SEEK_CUR))
        raise


@cache
def waves() -> Any:
    """Return the library, whose calls hold the interpreter's lock: they must be short.

    It takes twice as long to compile as that of `native`, and few simulations need it. Raises
    ``SimulationError`` if it cannot be compiled.
    """
    source = Path(str(files("cppsim") / "waveforms" / "waves.cc"))
    return bind(ctypes.PyDLL(str(BUILDER.from_files(source))), _SIGNATURES)
