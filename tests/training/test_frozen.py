"""What training depends on stays as it is until 0.3.0: the study figure_3 is under way."""

import json

from ntkcond.run.record import CODE, modules_of
from workflow import ROOT

FROZEN = ROOT / "tests/reference/frozen.json"


def test_no_module_that_a_training_job_depends_on_has_changed():
    """Moved lines, comments and messages are free. What is meant to change waits for 0.3.0."""
    today = CODE.digests(*modules_of("sgd"))
    assert today == json.loads(FROZEN.read_text("utf-8"))
