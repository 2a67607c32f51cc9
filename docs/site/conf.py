"""The documentation site: README, the pages of docs/, a gallery of every artefact, the library.

`make docs` builds it (docs/site/build.py).
"""

import sys
from datetime import date
from pathlib import Path

from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parent))
import gallery

project = "ntkcond"
author = "The ntkcond developers"
copyright = f"{date.today().year}, {author}"
root_doc = "index"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
include_patterns = [
    "*.md", "gallery.rst", "*/README.md", "docs/*.md",
    "docs/**/README.md", "studies/*.md", "studies/*/*.md", "docs/site/library.rst",
    "results/*.md", "tests/*.md",
]  # fmt: skip

myst_heading_anchors = 4
default_role = "code"
highlight_language = "none"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
napoleon_google_docstring = False
napoleon_custom_sections = [("Attributes", "params_style")]  # a list, as parameters are
copybutton_prompt_text = ">>> "
nitpicky = True
nitpick_ignore_regex = [("py:.*", ".*")]  # types of NumPy and torch: the site has no other's pages
linkcheck_timeout = 30
linkcheck_ignore = ["report.html"]  # beside the pages, not one of them

html_theme = "furo"
html_title = "ntkcond"
html_show_sphinx = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}
html_static_path = ["static"]
html_favicon = "static/icon.svg"
html_css_files = ["site.css"]


def add_pages(app: Sphinx, name: str, source: list[str]) -> None:
    """The front page is README.md, which knows no list of pages."""
    pages = f"\n{(Path(__file__).parent / 'contents.md').read_text('utf-8')}"
    folder = Path(app.srcdir)
    claims = [folder / "results/claims.md", *sorted(folder.glob("studies/*/claims.md"))]
    places = [path.relative_to(folder).with_suffix("") for path in claims if path.is_file()]
    verdicts = [f"{place.parent.name} <{'/' + place.as_posix()}>" for place in places]
    below = "\n".join(["```{toctree}", ":hidden:", *verdicts, "```", ""])
    if name == root_doc:
        source[0] += pages
    elif name == "docs/claims" and verdicts:  # one entry of the menu, that opens
        source[0] += f"\n{below}"
    elif name not in pages + below and not source[0].startswith(":orphan:"):
        source[0] = "---\norphan: true\n---\n" + source[0]


def for_keyboards_and_readers(app: Sphinx, page: str, template: str, context: dict, _) -> None:
    """What scrolls can be reached by keys, and headings of the menu have a level."""
    for word, before, after in (
        ("body", "<pre>", '<pre tabindex="0">'),
        ("body", '<div class="table-wrapper', '<div tabindex="0" class="table-wrapper'),
        ("furo_navigation_tree", 'role="heading"', 'role="heading" aria-level="2"'),
    ):
        context[word] = context.get(word, "").replace(before, after)


def setup(app: Sphinx) -> None:
    app.connect("source-read", add_pages)
    app.connect("html-page-context", for_keyboards_and_readers, priority=900)  # after the theme's
    app.connect("builder-inited", lambda app: gallery.write(Path(app.srcdir)))
