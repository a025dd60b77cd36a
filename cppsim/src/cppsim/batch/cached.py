"""Sources of batches in the cache, which are found before Amaranth writes a netlist."""

import pickle
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from ..compiling import CACHE, content_key, source_digest
from .circuit import PreparedBatch
from .description import Source
from .source import WrittenBatch, power_on_rows, write_batch

CODE_DIGEST = source_digest("amaranth.hdl", "cppsim")
"""The digest of all code between a prepared design and its source, as it was loaded."""

_SOURCE = "source.pickle"


@dataclass
class CachedBatch:
    """A written design, which is lowered only for a source that is not in the cache.

    Raises ``BatchError`` for a design that cannot be lowered or written.
    """

    design: PreparedBatch
    _source: Source | None = field(default=None, init=False)

    def source(self, backend: str | None = None) -> Source:
        """Return C++ that compiles for ``backend``, or for both backends."""
        self._source = self._loaded(backend)
        return self._source

    @property
    def rows(self) -> bytes:
        """The bytes of an instance's memories at power-on."""
        source = self._source or self.source()
        return power_on_rows(source.description.memories.values(), self.design.contents)

    @cached_property
    def _key(self) -> str:
        return content_key(self.design.key(), CODE_DIGEST)

    @cached_property
    def _written(self) -> WrittenBatch:
        return write_batch(self.design.lowered())

    def _loaded(self, backend: str | None) -> Source:
        def fill(folder: Path) -> None:
            source = self._written.source(backend)
            (folder / _SOURCE).write_bytes(pickle.dumps(source, protocol=5))

        try:
            folder = CACHE.cached("batch", content_key(self._key, str(backend)), fill)
            source: Source = pickle.loads((folder / _SOURCE).read_bytes())
        except OSError:  # another process has removed the entry, or the disk is full
            return self._written.source(backend)
        return source
