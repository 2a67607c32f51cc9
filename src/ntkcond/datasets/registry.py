"""The data sets that ntkcond knows, and what the config may say of each.

Read by the Snakefile at every start: nothing heavy is imported here. The modules themselves are
imported by name in `module`, so that editing one rebuilds that data set and no other.
"""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import ModuleType

CUSTOM = "custom"


@dataclass(frozen=True)
class Source:
    """A kind of data set.

    title: as figures call it. samples, features: how many training samples there are and values
    in each; None where the config or a file says. test_samples: in a test split of its own.
    raw_files: what a download fetches, relative to data_dir. options: settings of its own.
    labels: whether samples have one (a user's file may). corpus: whether they come from a corpus of
    audio files, too large to be read whole. defaults: of options that the config may leave out.
    """

    title: str
    samples: int | None = None
    features: int | None = None
    test_samples: int = 0
    raw_files: tuple[str, ...] = ()
    options: frozenset[str] = frozenset()
    labels: bool = True
    corpus: bool = False
    defaults: Mapping[str, object] = field(default_factory=dict)


_IDX = (
    "train-images-idx3-ubyte.gz",
    "train-labels-idx1-ubyte.gz",
    "t10k-images-idx3-ubyte.gz",
    "t10k-labels-idx1-ubyte.gz",
)

SOURCES = {
    "synthetic": Source("synthetic", options=frozenset({"features"}), labels=False),
    "digits": Source("digits", samples=1797, features=64, options=frozenset({"scale", "hold_out"})),
    "mnist": Source(
        "MNIST",
        samples=60_000,
        features=784,
        test_samples=10_000,
        raw_files=tuple(f"MNIST/raw/{name}" for name in _IDX),
        options=frozenset({"scale", "mirrors"}),
    ),
    "fashion_mnist": Source(
        "Fashion-MNIST",
        samples=60_000,
        features=784,
        test_samples=10_000,
        raw_files=tuple(f"FashionMNIST/raw/{name}" for name in _IDX),
        options=frozenset({"scale", "mirrors"}),
    ),
    "svhn": Source(
        "SVHN",
        samples=73_257,
        features=3072,
        test_samples=26_032,
        raw_files=("SVHN/train_32x32.mat", "SVHN/test_32x32.mat"),
        options=frozenset({"scale", "mirrors"}),
    ),
    "librispeech": Source(
        "LibriSpeech",
        corpus=True,
        options=frozenset(
            {
                "subset",
                "features",
                "mel",
                "splice",
                "normalise",
                "labels",
                "hold_out",
                "bad_utterances",
                "mirrors",
            }
        ),
        defaults={
            "subset": "train-clean-100",
            "features": 768,
            "mel": 48,
            "splice": 16,
            "normalise": "global",
            "bad_utterances": "refuse",
        },
    ),
    CUSTOM: Source("custom", options=frozenset({"file", "scale", "hold_out"})),
}


def module_name(source: str) -> str:
    """Dotted name of the module that reads a data set; part of its rule's code digest."""
    return f"ntkcond.datasets.{source}"


def module(source: str) -> ModuleType:
    """The module itself. It has `load(data_dir, options) -> Raw` and, for a set with raw_files,
    `downloads(mirrors) -> {raw file: Download}`; of a corpus instead
    `draw(corpus, data_dir, options) -> Samples`."""
    return importlib.import_module(module_name(source))


def title(name: str) -> str:
    """What figures call the data set of this name: the user's own sets keep theirs."""
    return SOURCES[name].title if name in SOURCES else name
