"""The description of a data set."""

from collections.abc import Mapping, Set
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Source:
    """A module's `SOURCE = Source(…)`, of literals only: it is read without running the module.

    title: its name in figures. samples, features: numbers of training samples and of values in
    each; None where the config or a file decides. shape: of a sample that is an image, channels
    first. test_samples: size of its test split. raw_files: files to download, relative to data_dir.
    options: settings without a default, of which the config must have the required ones; defaults:
    the other settings. labels: whether samples have labels (a user's file may). corpus: whether
    samples come from a corpus of audio files, which is too large to be read whole.
    """

    title: str
    samples: int | None = None
    features: int | None = None
    shape: tuple[int, ...] = ()
    test_samples: int = 0
    raw_files: tuple[str, ...] = ()
    options: Set[str] = frozenset()
    required: Set[str] = frozenset()
    defaults: Mapping[str, object] = field(default_factory=dict)
    labels: bool = True
    corpus: bool = False

    @property
    def settings(self) -> Set[str]:
        """All settings of this data set alone."""
        return self.options | self.defaults.keys()
