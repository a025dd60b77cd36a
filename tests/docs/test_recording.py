"""The recorded terminal shows what the demo and the lines of the README print today."""

import re

import pytest

from bitlane.command_line.cli import DONE, main
from support.docs.pages import ROOT, blocks
from support.docs.recording import COLUMNS, PICTURE, drawn, lines_of, session

SHOWN = PICTURE.read_text(encoding="utf-8")


def test_the_picture_is_drawn_by_its_program() -> None:
    assert drawn(lines_of(SHOWN)) == SHOWN, "run make recording"


def test_its_python_is_that_of_the_readme() -> None:
    python = next(each for each in blocks(ROOT / "README.md") if each.language == "python")
    assert "\n".join(lines_of(SHOWN)).endswith(f"$ python\n{python.text.rstrip()}")


def test_its_examples_are_those_of_the_demo(capsys: pytest.CaptureFixture[str]) -> None:
    """They need one circuit, that of ``sim``."""
    assert main(["demo", "examples"]) == DONE
    examples = re.search(r"^Examples: .*?\n\n", capsys.readouterr().out, flags=re.M | re.S)
    assert examples
    assert examples[0] in "\n".join(lines_of(SHOWN))


@pytest.mark.slow
def test_all_of_it_is_what_the_demo_prints(
    capsys: pytest.CaptureFixture[str], tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(str(tmp_path))
    assert main(["demo"]) == DONE
    printed = "\n".join(session(capsys.readouterr().out))
    assert timeless(printed) == timeless("\n".join(lines_of(SHOWN)))


def timeless(text: str) -> str:
    """Return ``text`` without the seconds at the ends of the demo's table."""
    return re.sub(r"(\d\.\d{3}) +\d+\.\d$", r"\1", text, flags=re.M)


def test_the_lines_enter_one_after_the_other_below() -> None:
    text = drawn(["$ one", "two & <three>"])
    frames = [(float(a), int(b)) for a, b in re.findall(r"([\d.]+)% .*?\((\d+)px\)", text)]
    assert frames == sorted(frames, key=lambda frame: (frame[0], -frame[1]))
    assert frames[0][0] == 0
    assert frames[0][1] - frames[1][1] == 18
    assert lines_of(text) == ["$ one", "two & <three>"]
    assert text.count('class="typed"') == 1


def test_a_line_that_is_too_long_is_refused() -> None:
    with pytest.raises(ValueError, match=r"93 characters; expected 92"):
        drawn(["x" * (COLUMNS + 1)])
