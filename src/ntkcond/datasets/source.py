"""What a data set says of itself."""

from collections.abc import Mapping, Set
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Source:
    """A module's `SOURCE = Source(…)`, of literals only: it is read without running the module.

    title: as figures call it. samples, features: how many training samples it has and values in
    each; None where the config or a file says. test_samples: in a test split of its own.
    raw_files: what a download fetches, relative to data_dir. options: settings of the data set;
    required: those that the config must have; defaults: of those that it may leave out. labels:
    whether samples have one (a user's file may). corpus: whether they come from a corpus of audio
    files, too large to be read whole.
    """

    title: str
    samples: int | None = None
    features: int | None = None
    test_samples: int = 0
    raw_files: tuple[str, ...] = ()
    options: Set[str] = frozenset()
    required: Set[str] = frozenset()
    defaults: Mapping[str, object] = field(default_factory=dict)
    labels: bool = True
    corpus: bool = False
