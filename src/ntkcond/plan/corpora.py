"""The state of each corpus, stored for the jobs of a cluster."""

import json
import os
from pathlib import Path

from ntkcond.plan import config
from ntkcond.plan.graph import RECORDED

MEMORY = RECORDED / "corpora.json"


def remembered_state(folder: Path, in_cluster: bool) -> str:
    """`ntkcond.datasets.speech.corpus.state`. A cluster's job uses the state that the submitting
    run found: to read 28,539 files of a shared file system takes long, and they may change
    meanwhile. Raises UserError for a folder that is no corpus."""
    known = json.loads(MEMORY.read_text("utf-8")) if MEMORY.is_file() else {}
    if in_cluster and str(folder) in known:
        return known[str(folder)]
    state = config.corpus_state(folder)
    if known.get(str(folder)) != state:
        MEMORY.parent.mkdir(parents=True, exist_ok=True)
        temporary = MEMORY.with_name(f"{MEMORY.name}.{os.getpid()}")
        temporary.write_text(json.dumps({**known, str(folder): state}), "utf-8")
        temporary.replace(MEMORY)
    return state
