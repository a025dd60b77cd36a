"""Every example prints the values that are written here, and agrees with the golden model."""

from pathlib import Path

import pytest

from bitlane import dml
from bitlane.driver.driver import Driver
from bitlane.model_file import load_model, prepare, run
from support.models.device import ModelLink

FOLDER = Path(__file__).parents[3] / "examples"

MAGNITUDES = """\
Resource 'magnitude':
[0] 1.5 (0x3FC00000)
[1] 2 (0x40000000)
[2] 0 (0x00000000)
[3] inf (0x7F800000)
[4] 65504 (0x477FE000)
[5] 3.25 (0x40500000)"""

PRINTED = {
    "bit_not": ["Resource 'output': 255, 127, 213, 0"],
    "bit_xor": ["Resource 'output': 255, 0, 37, 254"],
    "bit_count": ["Resource 'output': 0, 6, 4, 5", "Resource 'narrow': 0, 6, 4, 5"],
    "strided": ["Resource 'output': 17, 132, 7, 34, 261, 7, 67, 518, 7"],
    "broadcast": [
        "Resource 'masked': 241, 2, 240, 0, 245, 6, 240, 0, 249, 10, 240, 0",
        "Resource 'flipped': 113, 114, 115, 116, 117, 118, 119, 120, 121, 122, 123, 124",
    ],
    "in_place": [
        "Resource 'text': 200, 195, 222, 198, 203, 196, 207, 139",
        "Resource 'text': 98, 105, 116, 108, 97, 110, 101, 33",
    ],
    "float32": ["Resource 'magnitude': 1.5, 2, 0, inf, 65504, 3.25", MAGNITUDES],
    "uint64": [
        "Resource 'left': 1, 9223372036854775808, 1, 6, 18446744073709551600",
        "Resource 'right': 1, 0, 1, 1, 1152921504606846975",
    ],
    "hamming": ["Resource 'distances': 0, 1, 32, 64"],
    "one_resource": ["Resource 'arena': 1, 2, 3, 4, 255, 255, 255, 255, 254, 253, 252, 251"],
}


def test_every_example_is_here_and_in_the_table() -> None:
    names = {path.stem for path in FOLDER.glob("*.json")}
    assert names == set(PRINTED)
    readme = (FOLDER / "README.md").read_text()
    for name, lines in PRINTED.items():
        row = next(line for line in readme.splitlines() if line.startswith(f"| `{name}.json`"))
        for line in lines:
            if "\n" not in line:
                assert f"`{line.partition(': ')[2]}`" in row


@pytest.mark.parametrize("name", sorted(PRINTED))
def test_example_prints_its_values(name: str) -> None:
    model = load_model(FOLDER / f"{name}.json")
    lines: list[str] = []
    with dml.Device(Driver(ModelLink())) as device:
        assert run(prepare(model, device), lines.append)
    assert [line for line in lines if line.startswith("Resource")] == PRINTED[name]
    checks = [line for line in lines if line.startswith("Check")]
    dispatches = [line for line in lines if line.startswith("Dispatch")]
    assert len(checks) == len(dispatches) > 0
    assert all(line.endswith("bytes equal") for line in checks)
