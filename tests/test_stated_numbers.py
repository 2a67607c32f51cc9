"""README, docs and captions against the results: numbers, words that compare, verdicts.

docs/measured/README.md says how to state a number. The results of the default config are those of
tests/reference, which `test_reference` holds against a run.
"""

import importlib.util
import re
import subprocess
import sys
from types import SimpleNamespace

import pandas as pd
import pytest

import pictures
import stated
from ntkcond.artefacts import claims, theory
from ntkcond.artefacts.registry import SPECS
from ntkcond.artefacts.verdicts.claim import VERDICTS
from stated import MEASURED, ROOT, Quantity, Values, agrees, problems, restated, table, values

PAGES = stated.pages()
CAPTIONS = {f"caption of {name}": spec.caption for name, spec in SPECS.items()}
TEXTS = PAGES | CAPTIONS
CLAIMS = [*theory.CLAIMS, *claims.CLAIMS]
WRITTEN = "run .venv/bin/python docs/stated.py --write, or see docs/measured/README.md"


@pytest.mark.parametrize("page", PAGES)
def test_every_number_of_a_page_is_that_of_its_source(page):
    wrong = problems(page, PAGES[page], values())
    assert not wrong, "\n".join([*wrong, WRITTEN])


# A planted mistake is found


def sources(page: str) -> list[tuple[int, int, str]]:
    """Of measured numbers in a page: start, end, source."""
    keyed = stated.keyed(PAGES[page])
    return [(start, end, key) for start, end, key in keyed if key != "-" and start < end]


def with_another_digit(text: str, start: int, end: int) -> str:
    number = text[start:end]
    if number in stated.WORDS:
        planted = "two" if number != "two" else "three"
    else:
        first = re.search(r"[1-9]", number)[0]
        planted = number.replace(first, "7" if first != "7" else "3", 1)
    return text[:start] + planted + text[end:]


@pytest.mark.parametrize("page", [page for page in PAGES if sources(page)])
def test_a_wrong_number_is_found_and_mended(page):
    """Each number with another first digit."""
    for start, end, source in sources(page):
        text = with_another_digit(PAGES[page], start, end)
        assert any(source in why for *_, why in stated.wrong(text, values())), source
    planted = with_another_digit(PAGES[page], *sources(page)[0][:2])
    assert agrees_everywhere(stated.written(planted))


def agrees_everywhere(text: str) -> bool:
    return not list(stated.wrong(text, values())) and not list(stated.tables(text))


@pytest.mark.parametrize("page", stated.CHECKED_WORDS)
def test_a_word_that_compares_in_the_wrong_direction_is_found(page):
    text, tried = PAGES[page], 0
    for start, _, source in stated.keyed(text):
        if not stated.is_comparison(source):
            continue
        word = list(re.finditer(stated.COMPARED, text[:start]))[-1]
        other = "grows" if re.fullmatch(stated.BELOW, word[0]) else "falls"
        planted = text[: word.start()] + other + text[word.end() :]
        assert any(source in why for *_, why in stated.wrong(planted, values())), source
        tried += 1
    assert tried > 3


@pytest.mark.parametrize("page", stated.CHECKED_WORDS)
def test_a_word_that_compares_needs_a_source(page):
    for words in ("κ falls with depth.", "The angle is larger with ReLU.", "Depth raises κ."):
        assert problems(page, f"{PAGES[page]}\n\n{words}\n", values())


def test_a_wrong_caption_is_found():
    """In the caption of a figure settings have sources, too."""
    page = "README.md"
    for right, wrong in (
        ("n = 512<", "n = 256<"),
        ("over five<", "over six<"),
        ("All 60,000<", "All 50,000<"),
        ("m = 512<", "m = 128<"),
        ("(0.6 h<", "(3 speakers, 0.6 h<"),
    ):
        assert right in PAGES[page]
        assert problems(page, PAGES[page].replace(right, wrong, 1), values()), wrong
    assert problems(page, PAGES[page].replace("512<!-- full_size/fig2 n relu -->", "512"), values())


def test_a_changed_table_is_found_and_mended():
    page = PAGES["docs/results.md"]
    changed = page.replace("| MNIST, ReLU |", "| Fashion, ReLU |")
    assert changed != page and problems("docs/results.md", changed, values())
    assert stated.written(changed) == page


def test_another_measurement_is_found():
    other = Values({**values(), "claims": values()["claims"] + 1})
    assert problems("docs/claims.md", PAGES["docs/claims.md"], other)


@pytest.mark.parametrize("source", ["no such name", "fig2 kappa_mean relu", "fig2 kappa_mean soft"])
def test_a_source_that_gives_no_number_is_found(source):
    assert problems("docs/claims.md", f"κ is 105<!-- {source} -->.", values())


NUMBERS = [
    "The export takes 12 s.",
    "It takes a minute and 12 s for 3 images.",
    "Each job takes 3.5 GB of memory.",
    "It is 2.5 times as fast.",
    "It is three times as fast.",
    "It ends after half an hour.",
    "κ is 105 on the digits.",
    "κ goes from 532 at L = 0 to 105 in the limit.",
    "At L = 1 and 0.0021 κ₀ it is.",
    "The smallest angle is 13.2°.",
    "p = 0.51.",
    "Of them 98 % hold.",
    "It reaches 164 Gflop/s.",
    "2,100 tests in 12 files.",
    "They agree within 2·10⁻¹⁵.",
    "κ ≈ 10⁹.",
]


@pytest.mark.parametrize("words", NUMBERS)
def test_a_number_without_a_source_is_found(words):
    for page in ("README.md", "docs/results.md", "docs/caching.md"):
        assert problems(page, f"{PAGES[page]}\n\n{words}\n", values())
    assert in_caption("caption of fig2", f"{CAPTIONS['caption of fig2']} {words}")


@pytest.mark.parametrize(
    "words",
    [
        "With n = 512, L = 1 to 10 and m = 64, 128 or 256 on 2,048 images.",
        "See Figure 2, §5.2, Theorem 3.5 and Eq. (10) of arXiv 2305.08813 (2023).",
        "The inputs are in [−1, 1], of norm 1, and (n + 3)/3 is the limit.",
        "Five seeds at depths 0 to 10, with 8 n² bytes in float64.",
    ],
)
def test_settings_need_no_source(words):
    assert not problems("docs/claims.md", f"{PAGES['docs/claims.md']}\n\n{words}\n", values())
    assert not in_caption("caption of fig2", f"{CAPTIONS['caption of fig2']} {words}")


@pytest.mark.parametrize(
    ("words", "value", "same"),
    [
        ("4 s", Quantity(3.987, "s"), True),
        ("3.99 s", Quantity(3.987, "s"), True),
        ("3.98 s", Quantity(3.987, "s"), False),
        ("3 min 58 s", Quantity(238.4, "s"), True),
        ("532,000", 531_900.0, True),
        ("532,000", 536_000.0, False),
        ("63 %", 0.6327, True),
        ("63 MB", Quantity(63, "s"), False),
        ("1.9·10⁻⁴", 0.0001936, True),
        ("10⁶", 10_000_000, False),
        ("half an hour", Quantity(30, "min"), True),
        ("−0.58", 0.58, False),
    ],
)
def test_a_stated_number_is_the_measured_one_rounded(words, value, same):
    assert agrees(words, value) == same


@pytest.mark.parametrize(
    ("words", "value", "now"),
    [
        ("4 s", Quantity(5.2, "s"), "5 s"),
        ("3 min 58 s", Quantity(300, "s"), "5 min 00 s"),
        ("53,000", 61_234.0, "61,000"),
        ("4.3·10⁸", 6.52e9, "6.5·10⁹"),
        ("−0.58", 0.213, "0.21"),
        ("+0.63", -0.2, "−0.20"),
        ("63 %", 0.711, "71 %"),
        ("five", 6, "6"),
    ],
)
def test_a_number_is_written_as_the_one_before_it(words, value, now):
    assert restated(words, value) == now and agrees(now, value)


# Captions


def statements() -> dict[str, tuple[list[str], list[str]]]:
    """Of each caption: its statements, and the pieces of it whose numbers are no results."""
    captions = {}
    text = (ROOT / "tests/captions.md").read_text("utf-8")
    for section in text.split("\n## ")[1:]:
        page, _, lines = section.partition("\n")
        parts = lines.partition("\nNo results:\n")[::2]
        captions[page] = tuple(
            [" ".join(item.split()) for item in re.split(r"^- ", part, flags=re.M)[1:]]
            for part in parts
        )
    return captions


def in_caption(page: str, caption: str) -> list[str]:
    """What is wrong with it."""
    text, found, covered = stated.prose(caption), [], []
    said, others = statements().get(page, ([], []))
    for words in said:
        literal, names = (re.split(r"\{([^{}]*)\}", stated.prose(words))[i::2] for i in (0, 1))
        pattern = rf"({stated.STATED})".join(map(re.escape, literal))
        match = re.search(pattern, text)
        if not match:
            found.append(f"the caption does not say: {words}")
            continue
        for number, name in zip(match.groups(), names, strict=True):
            if not agrees(number, values()[name]):
                found.append(f"{number} stated, {values()[name]} measured: {name}")
        covered.append(match.span())
    for words in others:
        pattern = ".*?".join(re.escape(part) for part in stated.prose(words).split(" … "))
        places = [match.span() for match in re.finditer(pattern, text)]
        covered += places or found.append(f"the caption does not say: {words}") or []
    return [*found, *stated.bare_numbers(text, stated.SETTINGS.values(), covered)]


@pytest.mark.parametrize("page", CAPTIONS)
def test_every_number_of_a_caption_was_measured_or_is_no_result(page):
    wrong = in_caption(page, CAPTIONS[page])
    assert not wrong, "\n".join([*wrong, "tests/captions.md says how"])


def test_statements_are_of_captions_that_exist():
    assert not set(statements()) - set(CAPTIONS)


# Files


def test_every_csv_names_its_command():
    text = PAGES["docs/measured/README.md"]
    for folder in ("tests/reference/default", "tests/reference/images"):
        assert f"| `{folder}/*.csv` | `make " in text
    for study in (ROOT / "studies").glob("*/*.csv"):
        folder = study.parent.relative_to(ROOT)
        assert f"| `{folder}/*.csv` | `make study" in text or study.parent.name == "images"
    for path in MEASURED.glob("*.csv"):
        assert table(path.name)[["command", "when"]].notna().all(axis=None), path


def test_every_measured_number_is_stated_somewhere():
    """A row of docs/measured/*.csv that nobody reads is deleted; `test_tutorial` reads its own."""
    used = {source for page in PAGES.values() for *_, source in stated.keyed(page)}
    used |= {name for source in used for name in source.split(" vs ")}
    for said, _ in statements().values():
        used |= {name for words in said for name in re.findall(r"\{([^{}]*)\}", words)}
    for path in MEASURED.glob("*.csv"):
        rows = table(path.name)
        if "quantity" in rows and path.name != "tutorial.csv":
            assert not set(rows.quantity) - used, path.name


def test_the_page_of_a_gpu_is_that_of_its_table():
    page = ROOT / "docs/gpu.md"
    if not page.is_file():
        pytest.skip("no GPU was measured")
    spec = importlib.util.spec_from_file_location("gpu", ROOT / "benchmarks/gpu.py")
    gpu = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(gpu)
    for _, rows in pd.read_csv(MEASURED / "gpu.csv").groupby("part"):
        assert gpu.as_markdown(rows) in page.read_text("utf-8")


def test_the_command_says_what_differs():
    command = [sys.executable, ROOT / "docs/stated.py", "docs/setting.md"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


# Verdicts


@pytest.fixture(scope="module")
def verdicts() -> pd.Series:
    return table("claims.csv").set_index("id").overall


def test_every_claim_has_a_verdict(verdicts):
    assert set(verdicts.index) == {claim.id for claim in CLAIMS}
    assert set(verdicts) <= set(VERDICTS)


def test_claims_that_pages_name_have_the_verdict_that_they_say(verdicts):
    name, verdict = r"`((?:newest|ours|\d)-[\w.-]+)`", rf"({'|'.join(VERDICTS)})"
    text = "\n".join(PAGES.values())
    named = set(re.findall(name, text))
    assert len(named) > 20
    assert named <= set(verdicts.index)
    said = re.findall(rf"{name}:? {verdict}", text)
    said += [(one, of) for of, one in re.findall(rf"{verdict}: {name}", text)]
    assert said
    for one, of in said:
        assert verdicts[one] == of, one


def test_no_text_says_that_relu_lowers_kappa_of_all_data():
    """Each place where a text says so names the data, or what does not hold."""
    said = re.compile(
        r"ReLU (?:always |only )?(?:lowers|reduces|improves|decreases) (?:the |κ)", re.I
    )
    limits = (
        "on these data", "images and speech", "does not", "same samples", "says that",
        "with β ≥ 1", "where κ of the inputs",
        "of any data | gaussian samples", "to each feature",
    )  # fmt: skip
    for name, text in TEXTS.items():
        text = stated.prose(stated.KEY.sub("", text)).replace("**", "")
        for sentence in re.split(r"(?<=[.:!?]) ", text):
            if said.search(sentence):
                assert any(words in sentence.lower() for words in map(str.lower, limits)), (
                    name,
                    sentence,
                )


def test_the_places_of_disagreement_are_counted_alike():
    numbers = sorted({claim.difference for claim in CLAIMS if claim.difference})
    assert numbers == [*range(1, 12), 13, 14]
    assert "1 to 14; 12 was" in stated.prose(CAPTIONS["caption of claims"])


def test_no_text_says_that_the_scales_of_figure_6_differ():
    assert not any("four different curves" in text for text in TEXTS.values())


@pytest.mark.parametrize("name", pictures.NAMES)
def test_a_picture_is_drawn_of_the_numbers_that_pages_state(name):
    assert pictures.is_todays(name), "python docs/pictures.py --write draws it anew"


def test_a_picture_of_other_numbers_or_code_is_found(tmp_path, monkeypatch):
    name = pictures.NAMES[0]
    numbers = (pictures.NUMBERS / f"{name}.csv").read_text("utf-8")
    (tmp_path / f"{name}.csv").write_text(numbers + "\n", "utf-8")
    with monkeypatch.context() as planted:
        planted.setattr(pictures, "NUMBERS", tmp_path)
        assert not pictures.is_todays(name)
    other = SimpleNamespace(digests=lambda *modules: {"artefacts.style": "0" * 16})
    monkeypatch.setattr(pictures, "CODE", other)
    assert not pictures.is_todays(name)
