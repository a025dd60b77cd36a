"""The table of faults on the page of the network quotes the messages of the link."""

import re

from support.docs.pages import ROOT

PAGE = ROOT / "docs" / "network.md"


def test_the_messages_of_the_faults_are_those_of_the_link() -> None:
    source = "".join(
        file.read_text(encoding="utf-8") for file in (ROOT / "host/bitlane/links").glob("*.py")
    )
    # Strings that continue on the next line are one string.
    source = re.sub(r'"\n\s+f?"', "", source)
    rows = [row for row in PAGE.read_text(encoding="utf-8").splitlines() if row.startswith("| ")]
    quoted = [text for row in rows for text in re.findall(r"`([^`]* [^`]*)`", row)]
    assert len(quoted) == 12
    assert [text for text in quoted if text not in source] == []
