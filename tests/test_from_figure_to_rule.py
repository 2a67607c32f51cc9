"""docs/from_figure_to_rule.md: its quotes are the code's, its rows are the workflow's jobs."""

import re

from ntkcond.artefacts.registry import SPECS
from workflow import ROOT

PAGE = (ROOT / "docs/from_figure_to_rule.md").read_text("utf-8")
CODE = [*ROOT.glob("workflow/rules/*.smk"), *ROOT.glob("src/ntkcond/steps/*.py")]


def test_each_quote_stands_in_the_code():
    quotes = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    texts = [path.read_text("utf-8") for path in CODE]
    assert len(quotes) == 3
    for quote in quotes:
        assert any(quote in text for text in texts), quote


def test_each_row_names_its_rule_and_its_modules():
    rows = re.findall(r"^\| `(results/.*?)`.*? \| `(\w+)`, `(\w+\.smk)` \| (.*) \|$", PAGE, re.M)
    assert len(rows) == 6
    for file, rule, rules, code in rows:
        text = (ROOT / "workflow/rules" / rules).read_text("utf-8")
        if rules == "artefacts.smk":
            assert rule.removeprefix("draw_") in SPECS and "results/" in file
        else:
            folder = file.split("/")[1]
            assert f"rule {rule}:" in text and f'"results/{folder}/{{dataset}}' in text
        for module in re.findall(r"`(\w+/\w+\.py)`", code):
            assert (ROOT / "src/ntkcond" / module).is_file(), module
    assert "conditioning" in SPECS["fig2"].inputs
