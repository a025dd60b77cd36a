"""examples/onnx_add.py prints what its page says, and the words that integers of Python give."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[3] / "examples"


def mixed(word: int, key: int = 0x9E3779B9) -> int:
    added = (word ^ word >> 15) + key
    return (added ^ added << 15) % 2**32


@pytest.mark.parametrize(
    "url", [pytest.param("numpy"), pytest.param("sim", marks=pytest.mark.slow)]
)
def test_the_example_prints_what_its_page_says(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    runpy.run_path(str(EXAMPLES / "onnx_add.py"))["main"](url)
    *lines, last = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("group ")] == [
        "group 1, device: node 0 (BitShift), node 1 (BitwiseXor)",
        "group 2, reference: 1 node",
        "group 3, device: node 3 (BitShift), node 4 (BitwiseXor)",
    ]
    assert last == "mixed: " + " ".join(f"{mixed(word << 29):08x}" for word in range(8))
    assert f"`{last}`" in (EXAMPLES / "README.md").read_text(encoding="utf-8")
