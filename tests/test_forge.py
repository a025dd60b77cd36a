"""Files for a forge and an editor are up to date: workflow, hooks, citation and changes."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

import bitlane

ROOT = Path(__file__).parents[1]


def loaded(file: str) -> Any:
    return yaml.safe_load((ROOT / file).read_text(encoding="utf-8"))


def test_the_workflow_runs_what_continuous_integration_runs_and_nothing_else() -> None:
    workflow = loaded(".github/workflows/ci.yml")
    [job] = workflow["jobs"].values()
    assert [step["run"] for step in job["steps"] if "run" in step] == [".ci/run"]
    assert workflow["permissions"] == {"contents": "read"}
    # YAML 1.1 reads the key `on` as a truth value.
    assert set(workflow[True]) == {"push", "pull_request"}
    [versions] = (x["with"]["python-version"] for x in job["steps"] if "python-version" in str(x))
    project = (ROOT / "pyproject.toml").read_text()
    assert set(versions.split()) == set(re.findall(r":: (3\.\d+)\b", project))
    assert f'requires-python = ">={versions.split()[-1]}"' in project, "the last one is `python`"


def test_the_hooks_are_local_and_call_make_lint() -> None:
    [repository] = loaded(".pre-commit-config.yaml")["repos"]
    assert repository["repo"] == "local"
    assert [hook["entry"] for hook in repository["hooks"]] == ["make lint"]


def test_the_citation_is_of_this_version() -> None:
    citation = loaded("CITATION.cff")
    assert citation["version"] == bitlane.__version__
    assert citation["license"] == "MIT"
    [date] = re.findall(rf"^## {re.escape(bitlane.__version__)} - (\S+)$", changes(), flags=re.M)
    assert str(citation["date-released"]) == date


def test_the_changes_begin_with_what_is_unreleased_and_go_back_in_time() -> None:
    titles = re.findall(r"^## (\S+)", changes(), flags=re.M)
    assert titles[0] == "Unreleased"
    assert titles[1] == bitlane.__version__
    numbers = [tuple(int(x) for x in title.split(".")) for title in titles[1:]]
    assert numbers == sorted(numbers, reverse=True)
    kinds = set(re.findall(r"^### (.*)$", changes(), flags=re.M))
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def changes() -> str:
    return (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("suffix", [".py", ".md", ".toml", ".yml"])
def test_files_are_as_the_editors_settings_say(suffix: str) -> None:
    tops = ("rtl", "cppsim", "sim", "host", "boards", "docs", "examples", ".github")
    files = [*ROOT.glob(f"*{suffix}")]
    files += [path for top in tops for path in (ROOT / top).rglob(f"*{suffix}")]
    assert files
    for path in files:
        data = path.read_bytes()
        assert data.endswith(b"\n") or not data, path
        assert not re.search(rb"[ \t\r]+$", data, flags=re.M), path
