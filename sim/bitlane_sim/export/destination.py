"""The destination of an exported core, a file or an integrator's folder, and the core's name.

Knows files and the options that name them, not what is in them.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bitlane.errors import BitlaneError

from .folder import DRIVER_NAMES
from .system_rdl import RESERVED

_NAME = "core"
"""The default name of a core in a folder."""


class ExportError(BitlaneError):
    """The core could not be exported. Nothing has been written."""


@dataclass(frozen=True, slots=True)
class Style:
    """Options of the text of a module."""

    sources: bool = False
    """Whether attributes `src` name the lines of `bitlane_rtl`."""
    flat: bool = False
    """Whether there is one module, without a hierarchy."""


PLAIN = Style()
"""The default style."""


@dataclass(frozen=True, slots=True)
class Destination:
    """The file ``module`` of the module ``name``, and its ``style``; ``folder`` is for more files,
    if any.
    """

    name: str
    module: Path
    folder: Path | None = None
    style: Style = PLAIN

    @property
    def page(self) -> Path:
        """The file of the module's page."""
        return self.module.with_suffix(".md")

    @property
    def option(self) -> str:
        """The option that a complaint begins with."""
        return "--output" if self.folder is None else "--folder"

    def words(self) -> list[str]:
        """The options that say all this, for who runs them where the files are."""
        usual = self.module.stem if self.folder is None else _NAME
        words = ["--src", "on"] if self.style.sources else []
        words += ["--flat"] if self.style.flat else []
        words += [] if self.name == usual else ["--prefix", self.name]
        if self.folder is None:
            return [*words, "-o", self.module.name]
        return [*words, "--folder", self.folder.name or "."]

    def write(self, files: Mapping[str, str]) -> None:
        """Write all of ``files``, by name, or none. Raises ``ExportError``."""
        place = self.module.parent
        made = self.folder is not None and not place.exists()
        unfinished = {place / f"{name}.{os.getpid()}.new": name for name in files}
        try:
            if made:
                place.mkdir()
            for path, name in unfinished.items():
                path.write_text(files[name], encoding="utf-8", newline="\n")
            for path, name in unfinished.items():
                path.replace(place / name)
        except OSError as error:
            shown = self.module if self.folder is None else self.folder
            raise ExportError(
                f"{self.option}: {shown} cannot be written: {error.strerror}"
            ) from error
        finally:
            _remove(unfinished, place if made else None)


def _remove(unfinished: Mapping[Path, str], folder: Path | None) -> None:
    """Remove what was not finished, and ``folder`` if there is nothing in it."""
    try:
        for path in unfinished:
            path.unlink(missing_ok=True)
        if folder and not any(folder.iterdir()):
            folder.rmdir()
    except OSError:
        # The error that brought us here says more.
        pass


def destination(
    output: Path | None, folder: Path | None, name: str | None, *, force: bool
) -> Destination:
    """Return the destination that ``output`` or ``folder`` names, with the core's ``name`` if any.

    ``force``: files may be replaced. Raises ``ExportError`` for a
    place where nothing can be or should be written, and for a name that no module can have.
    """
    if folder is None:
        assert output is not None
        found = _file(output, name)
    else:
        found = _in_folder(folder, name or _NAME)
    if not is_identifier(found.name):
        option = "--output" if name is None else "--prefix"
        raise ExportError(
            f"{option}: a module cannot be called {found.name!r}: expected letters, digits and _,"
            " and no keyword of Verilog; choose another --prefix"
        )
    place = found.module.parent if folder is None else folder.absolute().parent
    if not place.is_dir():
        raise ExportError(f"{found.option}: {place} is not a folder; make it first")
    if folder is not None and not force and folder.exists() and any(folder.iterdir()):
        raise ExportError(
            f"--folder: {folder} is not empty; choose another, or --force to replace what is there"
        )
    for path in (found.module, found.page):
        if path.is_dir():
            raise ExportError(f"{found.option}: {path} is a folder; expected a file")
        if folder is None and not force and os.path.lexists(path):
            raise ExportError(
                f"--output: {path} exists; choose another, or --force to replace {found.module}"
                f" and {found.page}"
            )
    return found


def _file(output: Path, name: str | None) -> Destination:
    if output.suffix != ".v":
        raise ExportError(f"--output: {output} has no ending .v")
    return Destination(output.stem if name is None else name, output)


def _in_folder(folder: Path, name: str) -> Destination:
    if folder.exists() and not folder.is_dir():
        raise ExportError(f"--folder: {folder} is a file; expected a folder, or a name for one")
    if name.lower() in DRIVER_NAMES:
        raise ExportError(f"--prefix: {name} is what the driver's files are called; choose another")
    if name in RESERVED:
        raise ExportError(f"--prefix: {name} is a word of SystemRDL; expected another name")
    return Destination(name, folder / f"{name}.v", folder)


_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

# Verilog-2005 (IEEE 1364-2005, annex B), and SystemVerilog's that a reader in its mode would take
# for keywords (IEEE 1800-2017, annex B).
_KEYWORDS = frozenset(
    # In the order of the annex.
    """
    always and assign automatic begin buf bufif0 bufif1 case casex casez cell cmos config deassign
    default defparam design disable edge else end endcase endconfig endfunction endgenerate
    endmodule endprimitive endspecify endtable endtask event for force forever fork function
    generate genvar highz0 highz1 if ifnone incdir include initial inout input instance integer
    join large liblist library localparam macromodule medium module nand negedge nmos nor
    noshowcancelled not notif0 notif1 or output parameter pmos posedge primitive pull0 pull1
    pulldown pullup pulsestyle_ondetect pulsestyle_onevent rcmos real realtime reg release repeat
    rnmos rpmos rtran rtranif0 rtranif1 scalared showcancelled signed small specify specparam
    strong0 strong1 supply0 supply1 table task time tran tranif0 tranif1 tri tri0 tri1 triand
    trior trireg unsigned use uwire vectored wait wand weak0 weak1 while wire wor xnor xor
    accept_on alias always_comb always_ff always_latch assert assume before bind bins binsof bit
    break byte chandle checker class clocking const constraint context continue cover covergroup
    coverpoint cross dist do endchecker endclass endclocking endgroup endinterface endpackage
    endprogram endproperty endsequence enum eventually expect export extends extern final
    first_match foreach forkjoin global iff ignore_bins illegal_bins implements implies import
    inside int interconnect interface intersect join_any join_none let local logic longint
    matches modport nettype new nexttime null package packed priority program property protected
    pure rand randc randcase randsequence ref reject_on restrict return s_always s_eventually
    s_nexttime s_until s_until_with sequence shortint shortreal soft solve static string strong
    struct super sync_accept_on sync_reject_on tagged this throughout timeprecision timeunit type
    typedef union unique unique0 unsigned until until_with untyped var virtual void wait_order
    weak wildcard with within
    """.split()  # noqa: SIM905
)


def is_identifier(text: str) -> bool:
    """Return whether ``text`` is an identifier in Verilog and in SystemVerilog."""
    return bool(_IDENTIFIER.fullmatch(text)) and text not in _KEYWORDS
