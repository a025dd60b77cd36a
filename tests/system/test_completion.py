"""Shell completion: bash itself completes a command that a user has typed."""

import shlex
from pathlib import Path

import pytest

from bitlane.command_line.cli import DONE, main
from bitlane_boards import boards
from support.processes import succeed


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("completion") / "bitlane"
    with pytest.MonkeyPatch.context() as patch, file.open("w", encoding="utf-8") as output:
        patch.setattr("sys.stdout", output)
        assert main(["completion", "bash"]) == DONE
    return file


def completed(script: Path, folder: Path, *typed: str) -> set[str]:
    """Return bash's completions of the last word of ``typed``."""
    words = shlex.join(["bitlane", *typed])
    lines = [
        f"source {shlex.quote(str(script))}",
        f"COMP_WORDS=({words}); COMP_CWORD={len(typed)}; COMPREPLY=()",
        "$(complete -p bitlane | sed 's/.*-F \\([^ ]*\\).*/\\1/')",
        'printf "%s\\n" "${COMPREPLY[@]}"',
    ]
    return set(succeed("bash", "--norc", "-c", "\n".join(lines), cwd=folder).split())


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        (("va",), {"validate"}),
        (("",), {"build", "completion", "info", "run"}),
        (("build", "iceb"), {"icebreaker", "icebreaker-bram"}),
        (("flash", ""), set(boards())),
        (("simulate", "t"), {"tangnano9k"}),
        (("export", "--configuration", "s"), {"small"}),
        (("run", "--no"), {"--no-check"}),
        (("run", "mod"), {"model.json"}),
        (("flash", "hx8k", "mod"), {"model.json"}),
    ],
    ids=lambda words: " ".join(sorted(words)),
)
def test_a_tab_completes(
    typed: tuple[str, ...], expected: set[str], script: Path, tmp_path: Path
) -> None:
    (tmp_path / "model.json").write_text("{}")
    found = completed(script, tmp_path, *typed)
    assert expected == found if typed[-1] else expected <= found


@pytest.mark.parametrize("shell", ["bash", "fish", "tcsh", "zsh"])
def test_every_shell_gets_the_names(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == DONE
    printed = capsys.readouterr().out
    assert [
        word for word in ("simulate", "icepi-zero", "feature-level") if word not in printed
    ] == []
