"""A hook of hatchling: cppsim's README as the wheel's description, without relative links.

A package index shows the description alone. Links that lead into the repository become absolute,
against the address ``Repository`` of ``[project.urls]``; without one only their text stays.
"""

import posixpath
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

README = "README.md"
_LINK = re.compile(r"\[([^]\n]+)\]\((?!https:)([^)#\s]*)(#[^)\s]*)?\)")


class Description(MetadataHookInterface):
    """Sets the field ``readme``, which ``[project]`` lists as dynamic."""

    def update(self, metadata: dict[str, Any]) -> None:
        text = Path(self.root, README).read_text(encoding="utf-8")
        home = metadata.get("urls", {}).get("Repository", "")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": _LINK.sub(lambda link: _absolute(link, home), text),
        }


def _absolute(link: re.Match[str], home: str) -> str:
    text, path, heading = link[1], link[2], link[3] or ""
    if not (home and path):
        return text
    file = posixpath.normpath(posixpath.join("cppsim", path))
    return f"[{text}]({home}/blob/main/{file}{heading})"
