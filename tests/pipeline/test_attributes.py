"""Which attributes of Snakemake's objects our code reads: documented ones, and those that
`ntkcond.pipeline.workflow` lists with what each is for."""

import re

import ntkcond.pipeline.workflow
from workflow import ROOT

DOCUMENTED = {"basedir", "cores", "source_path"}  # of `workflow`, in Snakemake's documentation


def test_what_is_read_beyond_the_documentation_is_listed():
    rules = [ROOT / "Snakefile", ROOT / "workflow/Snakefile", *ROOT.glob("workflow/**/*.smk")]
    files = [*ROOT.glob("src/ntkcond/**/*.py"), *rules]
    text = "\n".join(path.read_text("utf-8") for path in files)
    read = re.findall(r"(?<![\w.])(?:self\.)?workflow\.([a-z_]+(?:\.[a-z_]+)?)", text)
    assert {*read} - DOCUMENTED == {"persistence.metadata"}
    assert "`persistence.metadata`" in ntkcond.pipeline.workflow.__doc__
