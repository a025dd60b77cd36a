"""Watches a run of a model file for `bitlane run --trace` and `--report`, and writes both."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from .. import dml
from ..driver.driver import Driver
from ..errors import BitlaneError
from ..files import expect_writable
from ..links.link import Link
from ..links.url import DeviceUrl
from ..model_file import Model
from .disassembly import lowered, shared_out
from .noting import NotingDriver
from .perfetto import CUT, write_trace

_ENTRIES: Final = 200_000
"""Room for them in a recording: some 50 MB of trace."""


@dataclass(frozen=True, slots=True)
class Watch:
    """What to write of a run, into which files. None: nothing of that kind."""

    trace: Path | None = None
    report: Path | None = None

    @property
    def _files(self) -> dict[str, Path]:
        """By the option that asks for it."""
        files = {"--trace": self.trace, "--report": self.report}
        return {option: path for option, path in files.items() if path is not None}

    def url(self, url: str) -> str:
        """``url`` with what makes the device record, unless nothing is to be written.

        Raises ``BitlaneError`` for a device that is not simulated, and for a file that cannot be
        written, before anything is run.
        """
        parsed = DeviceUrl.parse(url)
        for option, path in self._files.items():
            parsed.expect_simulated(option)
            if option == "--report" and find_spec("bokeh") is None:
                raise BitlaneError("--report: needs Bokeh: pip install 'bitlane[report]'")
            expect_writable(option, path)
        if not self._files or parsed.has_option("record"):
            return url
        return parsed.with_option("record", str(_ENTRIES))

    def driver(self, link: Link) -> Driver:
        """The driver of ``link``, one that notes commands if anything is to be written."""
        return NotingDriver(link) if self._files else Driver(link)

    @contextmanager
    def written(self, driver: Driver, model: Model, level: dml.FeatureLevel) -> Iterator[None]:
        """Write at the end of the block, however it ends, what ``driver`` has done for ``model``.

        The driver is one of `driver`'s. Says on standard error what was cut. Raises ``OSError``.
        """
        try:
            yield
        finally:
            if isinstance(driver, NotingDriver) and driver.noted:
                self._write(driver, model, level)

    def _write(self, driver: NotingDriver, model: Model, level: dml.FeatureLevel) -> None:
        recording = driver.link.recording
        assert recording is not None
        plan = lowered(model, driver.registers(), level)
        dispatches = shared_out(
            driver.noted, [each.name for each in plan], [len(each.commands) for each in plan]
        )
        if recording.cut:
            print(f"bitlane: {CUT.format(recording.end - 1)}", file=sys.stderr)
        if self.trace is not None:
            write_trace(self.trace, recording, dispatches, driver.link.description)
        if self.report is not None:
            # What it needs is an extra.
            from .report import write_report

            titles = Path(model.file).name, driver.link.description
            write_report(self.report, recording, dispatches, driver.geometry, titles)


NO_WATCH: Final = Watch()
"""Of a run of which nothing is written."""
