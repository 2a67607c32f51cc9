"""Which attributes of Snakemake's objects our code reads: documented ones, and those that
`ntkcond.pipeline.workflow` lists with what each is for. The list may only become shorter."""

import ast
import re

import ntkcond.pipeline.workflow
from workflow import ROOT

DOCUMENTED = {"basedir", "cores", "source_path"}  # of `workflow`, in Snakemake's documentation
AT_MOST = 1


def chains(tree: ast.AST) -> set[str]:
    """Such as dag.forcefiles, read from `workflow`, `self.workflow`, or a name given to a part."""
    parts = {"workflow": "", "self.workflow": ""}
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
                pairs = zip(names, values, strict=True)
            case ast.Assign(targets=[name], value=value):
                pairs = [(name, value)]
            case _:
                continue
        for name, value in pairs:
            text = ast.unparse(value)
            if isinstance(name, ast.Name) and re.match(r"self\.workflow\.\w+$", text):
                parts[name.id] = text.removeprefix("self.workflow.")
    read = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute):
            continue
        words = ast.unparse(node)
        for root, part in parts.items():
            if re.fullmatch(rf"{re.escape(root)}(\.\w+)+", words):
                read.add(".".join(filter(None, [part, words.removeprefix(f"{root}.")])))
    # of workflow.dag.forcefiles.update only dag.forcefiles
    of_builtin = ("update", "items", "append")
    read = {chain for chain in read if chain.rpartition(".")[2] not in of_builtin}
    return {chain for chain in read if not any(other.startswith(f"{chain}.") for other in read)}


def test_what_is_read_beyond_the_documentation_is_listed_and_no_more():
    source = ast.parse((ROOT / "src/ntkcond/pipeline/workflow.py").read_text("utf-8"))
    read = chains(source) - DOCUMENTED - {"workflow"}
    listed = re.findall(r"`([\w.]+)`", ntkcond.pipeline.workflow.__doc__)
    assert read <= set(listed)
    assert len(read) <= AT_MOST, sorted(read)
    others = [
        path
        for path in ROOT.glob("src/ntkcond/**/*.py")
        if path.name != "workflow.py" and chains(ast.parse(path.read_text("utf-8")))
    ]
    assert not others
    rules = "\n".join(path.read_text("utf-8") for path in ROOT.glob("workflow/**/*.smk"))
    snakefiles = "\n".join(
        (ROOT / p).read_text("utf-8") for p in ("Snakefile", "workflow/Snakefile")
    )
    assert set(re.findall(r"(?<![\w.])workflow\.(\w+)", rules + snakefiles)) <= {
        *DOCUMENTED, "smk", "Workflow",
    }  # fmt: skip


def test_an_attribute_that_is_not_listed_is_noticed():
    tree = ast.parse("dag = self.workflow.dag\nfor job in dag.jobs: pass\nself.workflow.hidden.x()")
    assert chains(tree) == {"dag.jobs", "hidden.x"}
