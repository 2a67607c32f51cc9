"""The report: what is in it, and that a browser without a network shows it."""

import base64
import html
import json
import re
import shutil
import time
from pathlib import Path

import numpy as np
import pytest

from chromium import chromium, errors, serious, show
from ntkcond.artefacts import claims, output
from ntkcond.artefacts.registry import SPECS
from ntkcond.run.record import CODE, modules_of, short_digest
from thoroughness import how_many
from workflow import MADE, ROOT, SMALL, snakemake, write_config

FIGURES = {f"results/{name}.png" for name, spec in MADE.items() if ".png" in spec.files}
OF_ANOTHER_CONFIG = ("results/fig2.png", "results/table_epochs.csv")
# Every epoch of every run; the same as a .csv, for reading.
LEFT_OUT = {"training.csv", "table_epochs.md", "table_generalization.md"}


@pytest.fixture(scope="module")
def page(finished, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    project = shutil.copytree(finished, folder / "a project", symlinks=True)
    snakemake(project, "--report", str(folder / "report.html"))
    return folder / "report.html"


def content(page: Path, name: str):
    """A variable of the page's script."""
    script = rf'<script id="[a-z-]+">\s+var {name} = (.*);$'
    match = re.search(script, page.read_text("utf-8"), re.M)
    return json.loads(match[1])


def test_every_artefact_is_in_the_report_as_it_is_on_disk(finished, page):
    shown = content(page, "results")
    names = {path.name for path in (finished / "results").iterdir() if path.is_file()} - LEFT_OUT
    files = {f"results/{name}" for name in names}
    assert {*FIGURES, "results/table_epochs.csv"} < files
    assert set(shown) == files
    for path, entry in shown.items():
        data = base64.b64decode(entry["data_uri"].partition("base64,")[2])
        assert data == (finished / path).read_bytes()


def code_of(rule: str, artefact: str = "") -> str:
    return short_digest(CODE.digests(*modules_of(rule, artefact)))


def test_every_artefact_has_a_section_and_a_caption(page):
    shown = content(page, "results")
    sections = content(page, "categories")
    assert set(sections) == {SPECS[Path(path).stem].section for path in shown}
    assert {
        path for groups in sections.values() for group in groups.values() for path in group
    } == (set(shown))
    for path, entry in shown.items():
        name = Path(path).stem
        assert code_of(name, name) in entry["caption"]
        assert re.search(r"pandas \d+\.\d+", entry["caption"])
        assert "paper" in entry["caption"]


def test_captions_have_the_settings_and_what_the_kernels_were_computed_with(page):
    shown = content(page, "results")
    plain = re.sub(r"<[^>]*>|\s+", " ", shown["results/fig2.png"]["caption"])
    plain = re.sub(r" +", " ", plain)
    assert "dataset synthetic : source synthetic, samples 60" in plain
    kernels = "kernel synthetic : networks relu, linear, depths 0, 2, width 24"
    assert f"{kernels}, trainable all, bias 0, seeds 1, 32, n 20" in plain
    for step in ("kernel", "spectrum", "closest_pair", "conditioning", "angles", "fig2"):
        assert re.search(rf" {step}: (array-api-compat [\d.]+, )?h5py ", plain)
    for dataset in ("digits", "synthetic"):
        assert f" dataset {dataset} : h5py " in plain
    assert code_of("kernel") in plain


def test_the_front_page_says_what_it_is_a_report_of(page):
    front = content(page, "workflow_desc")
    for part in (
        "ntkcond",
        "How to read κ",
        "unresolved",
        "arXiv 2305.08813",
        "snakemake --report",
    ):
        assert part in front
    for setting in ("synthetic", "digits", r'"seeds": \[\s+1,\s+32', "24", "20"):
        assert re.search(setting, html.unescape(re.sub(r"<[^>]*>", "", front)))


def test_the_front_page_says_how_to_read_what_figures_have(page):
    front = content(page, "workflow_desc")
    for mark in ("n", "m, L", "seeds", "shade", "thin line", "grey band", "hollow triangle"):
        assert re.search(rf"<dt>{mark}\b.*</dt>|<dt>{mark}</dt>", front), mark


def test_the_front_page_names_artefacts_by_their_titles(page):
    front = content(page, "workflow_desc")
    shown = content(page, "results")
    links = re.findall(r'<a class="reference external"[^>]*>([^<]*)</a>', front)
    assert {entry["labels"]["artefact"] for entry in shown.values()} < set(links)
    assert not {Path(path).name for path in shown} & set(links)


def test_the_front_page_shows_figure_2(finished, page):
    front = content(page, "workflow_desc")
    picture = re.search(r'src="data:image/png;base64,([^"]*)"', front)[1]
    assert base64.b64decode(picture) == (finished / "results/fig2.png").read_bytes()


def test_the_front_page_counts_the_verdicts():
    """By the third part of claims.md, where there is one."""
    table = output.read(ROOT / "studies/full_size/claims.csv")
    counted = claims.counts(table.fillna({"same_as": "", "support": ""}))["theorem"]
    summary = claims.markdown(table).split("\n\n")[2]
    words = f"Of {sum(counted.values())} theorems and closed forms: **holds** {counted['holds']},"
    assert summary.startswith(words) and counted["holds"] > 20
    front = (ROOT / "workflow/report/front.rst").read_text("utf-8")
    assert '"claims.md").read_text("utf-8").split("\\n\\n")[2]' in front


def written_well(page: Path) -> bool:
    """Docutils puts what it cannot read into the page, as a system-message."""
    return "system-message" not in page.read_text("utf-8")


def test_the_report_of_another_config_is_written_as_well(project, page, tmp_path):
    """A set of the user's own with an awkward name, one activation, one NTK of all samples."""
    rng = np.random.default_rng(0)
    np.savez(project / "mine.npz", x=rng.standard_normal((12, 6)), y=np.arange(12) % 2)
    config = {**SMALL, "depths": [1], "activations": ["relu"], "block": "all"}
    training = {"epochs": 2, "learning_rates": [1]}
    config["datasets"] = {"mine_": {"file": "mine.npz", "training": training}}
    shown = ("fig2", "fig3", "fig_activations_ntk", "fig_width", "fig_samples", "fig_descent")
    write_config(project, {**config, "figures": {key: ["mine_"] for key in shown}})
    whole = how_many("WHOLE_REPORTS", few=0, thorough=1)
    targets = () if whole else OF_ANOTHER_CONFIG
    snakemake(project, *targets)
    snakemake(project, *targets, "--report", str(tmp_path / "other.html"))
    assert "mine_" in content(tmp_path / "other.html", "workflow_desc")
    assert (
        "digits" not in content(tmp_path / "other.html", "results")["results/fig2.png"]["caption"]
    )
    assert written_well(tmp_path / "other.html")
    assert written_well(page)


def test_a_report_of_one_figure_can_be_asked_for(project, tmp_path):
    snakemake(project, "results/fig1.png", "--report", str(tmp_path / "one.html"))
    assert "results/fig1.png" in content(tmp_path / "one.html", "results")
    assert written_well(tmp_path / "one.html")


def test_no_report_is_written_of_files_that_other_settings_made(project, tmp_path):
    """Also of those that `--touch` accepts: captions would say what they were not made with."""
    write_config(project, {**SMALL, "width": 48})
    done = snakemake(project, "--report", str(tmp_path / "stale.html"), check=False)
    output = done.stdout + done.stderr
    assert done.returncode != 0
    assert re.search(
        r"ntkcond: no report: results/\S+ is out of date \(width=24 → width=48\)", output
    )
    assert "Traceback" not in output
    assert not (tmp_path / "stale.html").exists()


@pytest.fixture(scope="module")
def browser(page):
    """Chromium with the page open from its file, and no network."""
    with chromium(page.parent) as chrome:
        chrome.implicitly_wait(60)
        chrome.execute_cdp_cmd("Network.enable", {})
        offline = {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}
        chrome.execute_cdp_cmd("Network.emulateNetworkConditions", offline)
        chrome.get(page.as_uri())
        yield chrome


def until(met, *arguments):
    """Waits for the page to get there: what `met` returns, once it is true."""
    end = time.monotonic() + 60
    while not (value := met(*arguments)):
        assert time.monotonic() < end, f"{met.__name__}{arguments}"
        time.sleep(0.05)
    return value


def clicked(browser, by: str, what: str) -> bool:
    """The menu moves while it changes: what is on its way cannot be hit yet."""
    from selenium.common.exceptions import ElementClickInterceptedException

    try:
        found = browser.find_element(by, what)  # its logo may cover what is scrolled below it
        browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", found)
        found.click()
    except ElementClickInterceptedException:
        return False
    return True


def open_section(browser, name: str) -> None:
    until(clicked, browser, "css selector", "nav nav li a, nav nav a")  # home
    until(clicked, browser, "xpath", f"//nav//a[normalize-space()='{name}']")


def rows(browser) -> list:
    return browser.find_elements("css selector", "nav tbody tr")


def visible_picture(browser) -> dict | None:
    """The picture shown, loaded and wholly within the window."""
    return browser.execute_script("""
        const image = [...document.images].find(each => !each.closest('nav'));
        if (!image || !image.complete || !image.naturalWidth) return null;
        const box = image.getBoundingClientRect();
        const top = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
        const within = box.left >= 0 && box.top >= 0 && box.right <= innerWidth
            && box.bottom <= innerHeight;
        return within && top === image ? {width: box.width, src: image.src} : null;
    """)


def test_a_browser_shows_the_front_page_from_its_top(browser):
    title = browser.find_element("css selector", "h1.title")
    assert title.text == "ntkcond"
    assert title.rect["y"] >= 0
    assert "How to read κ" in browser.find_element("css selector", ".prose").text


HIDDEN = """
    const hidden = [];
    for (const text of document.querySelectorAll('.prose h1, .prose p, .prose li, .prose dd')) {
        text.scrollIntoView({block: 'center'});
        const box = text.getBoundingClientRect();
        for (const x of [box.left + 1, box.right - 1]) {
            const top = document.elementFromPoint(x, box.top + box.height / 2);
            if (!top || !top.closest('.prose')) hidden.push(text.textContent.slice(0, 50));
        }
    }
    document.querySelector('.prose h1').scrollIntoView();
    return hidden;
"""


@pytest.mark.parametrize("width", [400, 700, 1000, 1400])
def test_no_text_of_the_front_page_is_covered(browser, width):
    """By Snakemake's menu, nor cut off at either side, in windows of any width."""
    show(browser, width, "light")
    end = time.monotonic() + 10
    while (hidden := browser.execute_script(HIDDEN)) and time.monotonic() < end:
        time.sleep(0.1)  # the menu moves to its place
    least = browser.execute_script("return document.querySelector('.prose p').clientWidth")
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert hidden == []
    assert least > 350


def test_the_front_page_is_accessible_and_shows_figure_2(browser):
    """Its own content: Snakemake's menu around it has links and an input without a name."""
    assert serious(browser, within=".prose") == []
    [picture] = browser.find_elements("css selector", ".prose img")
    assert browser.execute_script("return arguments[0].naturalWidth", picture) > 500


def test_a_browser_shows_a_file_of_each_section_and_its_caption(browser, page):
    """The first, and one of each kind; that all of them are in the page needs no browser."""
    shown, sections = content(page, "results"), content(page, "categories")
    seen = set()
    for section in sorted(sections):
        paths = [path for group in sections[section].values() for path in group]
        open_section(browser, section)
        assert len(rows(browser)) == len(paths)
        labels = [
            [cell.text for cell in row.find_elements("tag name", "td")[:2]] for row in rows(browser)
        ]
        for position, (artefact, kind) in enumerate(labels):
            if position and kind in seen:
                continue
            open_section(browser, section)
            row = rows(browser)[position]
            wanted = {"artefact": artefact, "file": kind}
            path = next(path for path in paths if shown[path]["labels"] == wanted)
            row.find_elements("css selector", "td:last-child a")[0].click()
            if path.endswith(".png"):
                picture = until(visible_picture, browser)
                assert picture["src"] == shown[path]["data_uri"]
                assert picture["width"] > 500
            elif path.endswith((".pdf", ".html")):
                frame = browser.find_element("tag name", "iframe")
                assert frame.is_displayed()
                assert frame.get_attribute("src") == shown[path]["data_uri"]
            else:
                until((page.parent / Path(path).name).is_file)
            about = rows(browser)[position].find_elements("css selector", "td:last-child a")[1]
            about.click()
            caption = browser.find_element("css selector", "nav .prose")
            assert caption.is_displayed()
            assert re.search(r"code\s+[0-9a-f]{12}", caption.text)
            assert re.search(r"numpy|pandas", caption.text)
            if path.endswith(".png"):  # the picture stays beside its caption
                assert until(visible_picture, browser)["width"] > 500
            seen.add(kind)
    assert seen == {one["labels"]["file"] for one in shown.values()}


def test_a_downloaded_table_is_the_file(finished, browser, page):
    tables = list(page.parent.glob("*.csv"))
    assert tables
    for table in tables:
        assert table.read_bytes() == (finished / "results" / table.name).read_bytes()


def test_links_of_the_front_page_lead_to_captions(browser, page):
    browser.get(page.as_uri())
    browser.find_element("link text", MADE["fig2"].title).click()
    caption = browser.find_element("css selector", "nav .prose")
    assert "smallest angle φ" in caption.text


def test_the_browser_had_no_error_and_asked_no_network(browser):
    assert errors(browser) == []
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    requested = {
        message["params"]["request"]["url"].partition(":")[0]
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
    }
    assert {"file", "data"} <= requested
    assert not requested & {"http", "https", "ws", "wss"}
