"""A batch writes C++ only for the backend that runs it; an exported folder holds it for both."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from amaranth.lib.fifo import SyncFIFO

from cppsim import Batch, Program
from cppsim.batch import source
from cppsim.batch.circuit import PortChoice, PreparedBatch
from cppsim.batch.source import write_batch


@pytest.mark.usefixtures("gpu", "fresh_cache")
@pytest.mark.parametrize(("backend", "unused"), [("threads", "Tables"), ("cuda", "Chunks")])
def test_a_batch_writes_only_the_backend_that_it_runs(
    backend: str, unused: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(*arguments: Any) -> None:
        raise AssertionError(f"{unused} are written")

    monkeypatch.setattr(source, unused, write)
    batch = Batch(SyncFIFO(width=8, depth=4), 3, backend)
    batch.set("w_en", np.array([0, 1, 1]))
    batch.step()
    assert batch.get("level").tolist() == [0, 1, 1]
    assert (batch.description.core_words > 0) == (backend == "threads")
    assert (batch.description.block_words > 0) == (backend == "cuda")


def test_the_source_of_both_has_the_lines_of_each() -> None:
    written = write_batch(PreparedBatch.of(PortChoice(SyncFIFO(width=8, depth=4))).lowered())
    sources = [written.source(), written.source("threads"), written.source("cuda")]
    both, cores, gpu = (set(x.text.splitlines()) for x in sources)
    core_words, block_words = sources[0].description.core_words, sources[0].description.block_words
    assert cores - both == {f"constexpr uint32_t CORE_WORDS = {core_words};"}
    assert gpu - both == {f"constexpr uint32_t BLOCK_WORDS = {block_words};"}
    sizes = f"constexpr uint32_t CORE_WORDS = {core_words}, BLOCK_WORDS = {block_words};"
    assert both - cores - gpu == {sizes, "#ifdef BLOCKS"}
    # So few words have short numbers, and a gate takes one 64-bit word.
    assert {"constexpr uint32_t NUMBER_BITS = 14;", "typedef uint16_t Number;"} <= both


def test_a_folder_holds_the_source_of_both(tmp_path: Path) -> None:
    batch = Batch(SyncFIFO(width=8, depth=4), 3, "threads")
    batch.export(tmp_path, Program().step())
    assert (tmp_path / "source.h").read_text(encoding="utf-8") == batch.written.source().text
