"""The documentation site: links lead somewhere, nothing is left out, a browser and a reader by keys
or by ear can use it."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import ntkcond
from chromium import chromium, errors, serious, show
from http_server import served
from ntkcond.artefacts.registry import SPECS
from workflow import MADE, ROOT


class Page(HTMLParser):
    """links: of a page; ids: what they can lead to; pictures: the alt text of each."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.pictures: list[str | None] = []
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.ids.add(attributes.get("id") or "")
        self.links += [attributes[name] or "" for name in ("href", "src") if name in attributes]
        if tag == "img":
            self.pictures.append(attributes.get("alt"))


@pytest.fixture(scope="module")
def site(finished, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "html"
    command = [sys.executable, ROOT / "docs/site/build.py"]
    options = ["--results", finished / "results", "--output", folder]
    built = subprocess.run([*command, *options], capture_output=True, text=True)
    assert (built.returncode, built.stderr) == (0, "")
    return folder


@pytest.fixture(scope="module")
def pages(site) -> dict[Path, Page]:
    return {path: Page(path) for path in site.rglob("*.html") if "_static" not in path.parts}


def test_every_link_leads_to_a_file_and_a_place_in_it(pages):
    assert len(pages) > 25
    lost = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            known = pages[target].ids if target in pages else set()
            place = parts.fragment and target in pages and unquote(parts.fragment) not in known
            if not target.is_file() or place:
                lost.append(f"{path.name}: {link}")
    assert lost == []


def test_every_picture_says_what_it_shows(pages):
    pictures = [alt for page in pages.values() for alt in page.pictures]
    assert len(pictures) > 15
    assert all(pictures)


def test_every_artefact_is_in_the_gallery(pages, site):
    gallery = site / "gallery.html"
    text = gallery.read_text("utf-8")
    for name, spec in SPECS.items():
        assert f"snakemake -j2 results/{name}{spec.files[0]}" in text
        for suffix in spec.files if name in MADE else ():
            links = [link for link in pages[gallery].links if link.endswith(f"/{name}{suffix}")]
            assert len(links) >= 2  # in the overview, and beside the caption


def test_the_gallery_names_artefacts_by_section_and_title(site):
    """In its overview, above the captions; the title leads to the caption."""
    gallery = (site / "gallery.html").read_text("utf-8")
    overview = gallery[gallery.index('class="rubric"') : gallery.index("<h2>")]
    links = re.findall(r'<a class="reference internal" href="#([^"]*)">(.*?)</a>', overview)
    plain = re.sub(r"<[^>]*>", "\n", overview)
    titles, captions = links[::2], links[1::2]
    assert {title for _, title in titles} == {spec.title for spec in SPECS.values()}
    assert captions == [(place, "caption") for place, _ in titles]
    assert len({place for place, _ in titles}) == len(titles) == len(SPECS)
    assert not any(f"\n{name}\n" in plain for name in SPECS)
    assert {spec.section for spec in SPECS.values()} == set(
        re.findall(r'<p class="rubric">(.*?)</p>', gallery)
    )


def test_every_public_name_is_in_the_reference(pages, site):
    ids = pages[site / "docs/site/library.html"].ids
    assert {f"ntkcond.{name}" for name in ntkcond.__all__} <= ids


def test_the_menu_names_no_two_pages_alike(site):
    """Verdicts of studies lie below the claims."""
    menu = (site / "index.html").read_text("utf-8").partition('class="sidebar-tree"')[2]
    names = re.findall(r'<li class="toctree-l1[^>]*><a[^>]*>(.*?)</a>', menu)
    assert len(names) == len(set(names)) > 25
    assert not any("full_size" in name for name in names)
    assert re.search(r'<li class="toctree-l2"><a[^>]*>full_size</a>', menu)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("downloads")) as chrome:
        yield chrome


@pytest.mark.parametrize(
    ("width", "scheme", "names"),
    [
        (1400, "light", ("index", "gallery", "library", "results", "search")),
        (1100, "light", ("index",)),
        (390, "light", ("index", "gallery")),
        (1400, "dark", ("index", "library")),
        (390, "dark", ("index", "results")),
    ],
)
def test_pages_fit_and_are_accessible(browser, pages, site, width, scheme, names):
    show(browser, width, scheme)
    with served(site) as address:
        for path in pages:
            if scheme == "light" or path.stem in names:
                browser.get(f"{address}/{path.relative_to(site)}")
                across = browser.execute_script("return document.documentElement.scrollWidth")
                assert across <= width, path
            if path.stem in names:
                assert serious(browser) == [], path
        assert errors(browser) == []


def test_lines_of_code_fit_into_their_box(browser, site):
    show(browser, 1400, "light")
    too_wide = (
        "return [...document.querySelectorAll('article pre')].filter("
        "box => box.scrollWidth > box.clientWidth).map(box => box.textContent)"
    )
    with served(site) as address:
        for page in ("index", "docs/library", "docs/extending"):
            browser.get(f"{address}/{page}.html")
            assert browser.execute_script(too_wide) == [], page


def test_the_search_finds_what_pages_say(browser, site):
    with served(site) as address:
        browser.implicitly_wait(30)
        browser.get(f"{address}/search.html?q=closest_pair")
        links = browser.find_elements("css selector", "#search-results li a")
    assert any("library.html" in link.get_attribute("href") for link in links)
