"""Every artefact, by its name: the SPEC of each module in this folder that has one."""

from pathlib import Path

from ntkcond.artefacts.spec import Spec
from ntkcond.run.descriptions import described

SPECS = described(Path(__file__).parent, "SPEC", Spec)
