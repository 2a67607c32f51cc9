"""The paper's theory in numbers: what the table of claims says of closed forms, random networks and
small descents, results/theory.csv. It takes no data set: another config changes nothing in it.

formulas: the closed forms; wide_networks: the limit of infinite width; fluctuations: how far from
it; conditioning: whether ReLU lowers κ of any data; mean_mode: when, and why; deep_limits and
residual: what depth does, with biases, in residual networks; descents: training.
`CLAIMS.add` joins a claim to its test.
"""

import pandas as pd

from ntkcond.artefacts.spec import Spec
from ntkcond.artefacts.theory import (
    conditioning,
    deep_limits,
    descents,
    fluctuations,
    formulas,
    mean_mode,
    residual,
    wide_networks,
)
from ntkcond.artefacts.verdicts.claim import TEXTS, Finding

SPEC = Spec(
    title="Table, findings on the theory",
    section="§ All claims",
    files=(".csv",),
    default=False,
    costs=False,
    caption="""
A row for each finding on the paper's theorems, closed forms and limits, from inputs that are made
for it and not from the data sets of the config:

- ``id``, ``kind``, ``source``, ``text``, ``correction``, ``difference``, ``same_as``, ``setting``,
  ``quantity``, ``expected``, ``measured``, ``spread``: as in the table of claims;
- ``as_stated``, ``as_corrected``: whether it agrees with the paper's statement, and with the
  correction of it; ``neither``: the verdict where it does neither;
- ``p``: of a contradiction, by a test over seeds; empty where nothing is random.

**The paper** has no such table.
""",
)

CLAIMS = [
    *wide_networks.CLAIMS, *fluctuations.CLAIMS, *formulas.CLAIMS, *conditioning.CLAIMS,
    *mean_mode.CLAIMS, *deep_limits.CLAIMS, *residual.CLAIMS, *descents.CLAIMS,
]  # fmt: skip


def table() -> pd.DataFrame:
    """A row for each finding: the texts of its claim, and the fields of `Finding`."""
    rows = [
        (*(getattr(claim, field) for field in TEXTS), *finding)
        for claim in CLAIMS
        for finding in claim.test({})
    ]
    numbers = pd.DataFrame(rows, columns=[*TEXTS, *Finding._fields])
    return numbers.astype({"difference": "Int64"})
