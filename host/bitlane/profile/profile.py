"""The files that `bitlane run --trace` and `--report` write of a run on the device sim or numpy."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from ..driver import RecordingDriver
from ..errors import BitlaneError
from ..files import expect_writable
from ..installation import how_to_install
from ..links import DeviceUrl
from .perfetto import CUT, write_trace

_ENTRIES: Final = 200_000
"""Capacity of a recording, in entries (about 50 MB of trace)."""


@dataclass(frozen=True, slots=True)
class RunProfile:
    """The files to write of a run; None for a file that is not wanted."""

    trace: Path | None = None
    report: Path | None = None

    def recording_url(self, url: str) -> str:
        """Return ``url`` with the option that makes the device record its buses.

        Raises ``BitlaneError`` if the device does not record or a file cannot be written.
        """
        parsed = DeviceUrl.parse(url)
        for option, path in (("--trace", self.trace), ("--report", self.report)):
            if path is None:
                continue
            parsed.expect_simulated(option, ("sim", "numpy"))
            if option == "--report" and find_spec("bokeh") is None:
                raise BitlaneError(f"--report: needs Bokeh: {how_to_install('report')}")
            expect_writable(option, path)
        if parsed.has_option("record"):
            return url
        return parsed.with_option("record", str(_ENTRIES))

    @contextmanager
    def written(self, driver: RecordingDriver, model: str) -> Iterator[None]:
        """Write the files when the block ends, also by an error, if any command was run.

        ``model`` is the path of the model file. Reports on standard error where the recording was
        cut. Raises ``OSError``.
        """
        try:
            yield
        finally:
            if driver.recorded:
                self._write(driver, model)

    def _write(self, driver: RecordingDriver, model: str) -> None:
        recording = driver.link.recording
        assert recording is not None
        if recording.cut:
            print(f"bitlane: {CUT.format(recording.end - 1)}", file=sys.stderr)
        if self.trace is not None:
            write_trace(self.trace, recording, driver.recorded, driver.link.description)
        if self.report is not None:
            # Bokeh is an extra.
            from .report import write_report

            about = driver.link.description, str(driver.link.prediction or "")
            titles = Path(model).name, ". ".join(filter(None, about))
            write_report(self.report, recording, driver.recorded, driver.geometry, titles)
