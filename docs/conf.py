"""The site that `make docs` builds into build/site: these pages, and the API from docstrings.

The pages are read on forges too, so they keep to Markdown that both show alike.
"""

import os
import re
from importlib import import_module
from inspect import signature
from itertools import pairwise
from pathlib import Path
from pkgutil import iter_modules

from docutils.nodes import Text, literal
from docutils.parsers.rst.roles import register_generic_role
from sphinx.addnodes import desc_annotation, desc_content, desc_signature
from sphinx.application import Sphinx
from sphinx.pycode import ModuleAnalyzer

from bitlane import __version__

project = "bitlane"
author = "The bitlane authors"
release = version = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.viewcode"]
exclude_patterns = ["performance/*"]

myst_heading_anchors = 3
highlight_language = "none"

default_role = "py:obj"
autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 88
toc_object_entries = False

html_theme = "furo"
html_title = f"bitlane {release}"
html_show_copyright = False
html_show_sphinx = False
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["site.css"]

ELSEWHERE = {
    "examples/README.md": "model_files.md",
    "examples/soc/README.md": "system_on_chip.md",
    "examples/uio/README.md": "linux.md",
    "cppsim/README.md": "cppsim.md",
    "cppsim/docs/from_amaranth.md": "cppsim_from_amaranth.md",
    "cppsim/docs/index.md": "cppsim_pages.md",
    "cppsim/docs/differs.md": "cppsim_differs.md",
    "cppsim/docs/batches.md": "cppsim_batches.md",
    "cppsim/docs/coverage.md": "cppsim_coverage.md",
    "cppsim/docs/how_it_works.md": "cppsim_how_it_works.md",
    "cppsim/docs/upstream.md": "cppsim_upstream.md",
    "cppsim/CHANGELOG.md": "cppsim_changes.md",
    "cppsim/docs/measurements.md": "cppsim_measurements.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changes.md",
}
"""Pages outside this folder, and the pages in ``elsewhere`` that include them."""

DOCS = Path(__file__).parent
SHOWN = {DOCS.parent / there: DOCS / "elsewhere" / here for there, here in ELSEWHERE.items()}

_LINK = re.compile(r"\]\(([^)\s:#]+)")

_PACKAGE = re.compile(r"^(\.\. automodule:: )(\S+)\.\*$", flags=re.M)
"""A line that stands for one of each module directly in a package."""


def _modules(line: re.Match[str]) -> str:
    """Return the lines of the modules of a package, in the order of their names."""
    found = iter_modules(import_module(line[2]).__path__, f"{line[2]}.")
    return "\n".join(f"{line[1]}{module.name}" for module in found if not module.ispkg)


def _adapt_page(app: Sphinx, page: str, source: list[str]) -> None:
    """Fill in pages from elsewhere and modules of packages; let links lead to pages of the site."""
    here = written = DOCS / f"{page}.md"
    for there in (there for there, shown in SHOWN.items() if shown == here):
        written, source[0] = there, there.read_text(encoding="utf-8")
        app.env.note_dependency(there)

    def adapted(link: re.Match[str]) -> str:
        target = Path(os.path.normpath(written.parent / link[1]))
        if not target.exists():
            return link[0]  # code
        return f"]({os.path.relpath(SHOWN.get(target, target), here.parent)}"

    source[0] = _PACKAGE.sub(_modules, _LINK.sub(adapted, source[0]))


def _adapt_docstring(
    app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]
) -> None:
    """Make lists of definitions of the sections of a docstring, which are underlined."""
    adapted: list[str] = []
    in_section = False
    for line, following in pairwise([*lines, ""]):
        if following.startswith("---"):
            adapted += [f".. rubric:: {line}"]
            in_section = True
        elif line.startswith("---"):
            adapted += [""]
        elif in_section and line and not line.startswith(" "):
            term, _, kind = line.partition(" : ")
            in_section = bool(kind) or following.startswith(" ")
            described = kind + ":" * following.startswith(" ")
            adapted += [f"``{term}``", f"    {described}"] if kind else [line]
        else:
            adapted += [line]
    lines[:] = adapted


def _adapt_signature(
    app: Sphinx, what: str, name: str, thing: object, options: object, taken: str, given: str
) -> tuple[str, str] | None:
    """Show what a component takes: Amaranth's metaclass shows ``*args`` in its place."""
    if what != "class" or "src_loc_at" not in (taken or ""):
        return None
    own = signature(vars(thing).get("__init__", thing))
    return str(own.replace(parameters=list(own.parameters.values())[1:])), given


def _adapt_port(app: Sphinx, domain: str, kind: str, content: desc_content) -> None:
    """Show the annotation of a port as it is written: signatures have no representation."""
    for shown in content.parent.findall(desc_signature):
        owner, _, name = shown.get("fullname", "").rpartition(".")
        if kind == "attribute" and shown["module"].startswith("bitlane_rtl."):
            analyzer = ModuleAnalyzer.for_module(shown["module"])
            analyzer.analyze()
            written = analyzer.annotations.get((owner, name), "")
            if written.startswith(("In(", "Out(")):
                annotation = shown.next_node(desc_annotation)
                annotation.clear()
                annotation += Text(f": {written}")


def setup(app: Sphinx) -> None:
    """Connect the functions above to the events of Sphinx, which calls this."""
    register_generic_role("py", literal)  # Amaranth's, in docstrings that cppsim inherits
    app.connect("source-read", _adapt_page)
    app.connect("autodoc-process-docstring", _adapt_docstring)
    app.connect("autodoc-process-signature", _adapt_signature)
    app.connect("object-description-transform", _adapt_port)
