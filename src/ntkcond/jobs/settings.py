"""Every setting of the config: its kind, and a sentence on what it means.

The check at start, the JSON Schema for editors and the tables of config/README.md come from here
(`ntkcond.plan.schema`). The Snakefile reads this at every start: the standard library only.
"""

import dataclasses
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from ntkcond.jobs.kinds import (
    FLAG,
    Kind,
    choice,
    known,
    list_of,
    mapping,
    number,
    record,
    text,
    whole,
)
from ntkcond.networks.activations import ACTIVATIONS
from ntkcond.networks.architectures import ARCHITECTURES

T = TypeVar("T")
Whole: TypeAlias = Sequence[int]
Numbers: TypeAlias = Sequence[float]
Words: TypeAlias = Sequence[str]
Count: TypeAlias = int | str

FROM_0, FROM_1 = whole(0), whole(1)
COUNT = whole(2, word="all", must="a whole number from 2 on, or all; at most 10⁹")
SEED = whole(0, 2**32 - 1, "a whole number from 0 to 2³² − 1")
_DIFFERENT = "a list of different whole numbers from 0 on, at least one, such as [1, 32]"
SEEDS, DEPTHS = list_of(SEED, _DIFFERENT), list_of(FROM_0, _DIFFERENT)
WIDTHS = list_of(FROM_1, "a list of different widths, such as [64, 512]")
SIZES = list_of(whole(2), "a list of different numbers of samples, such as [16, 64]")
ACTIVATION = known("the name of an activation", ACTIVATIONS)
ACTIVATIONS_ = list_of(ACTIVATION, "a list of activations, each named once, such as [relu, linear]")
BETA = number("a number from 0 on, at most 10³⁰")
NUMBERS = list_of(  # YAML takes 1e-3 for text
    number("a number above 0, such as 0.001 or 1.0e-3, at most 10³⁰", math.ulp(0)),
    "a list of different numbers above 0, at least one, such as [0.5, 1, 2]",
)
_ANY = number("a number", -sys.float_info.max, sys.float_info.max)
INTERVAL = list_of(_ANY, "an interval, such as [-1, 1]", 2, 2, same=True)
IMAGE = "channels, height and width of an image, such as [1, 28, 28]"
NAME, IN_PATH = "[A-Za-z][A-Za-z0-9_-]{0,39}", r"[^{}\x00-\x1f\x7f]"  # Snakemake takes { }
WORD = "a name of letters, digits, _ and -, at most 40, that begins with a letter"


def file_at(what: str, ending: str = "") -> Kind:
    return text(f"{what}, without {{, }} and line breaks in its path", f"{IN_PATH}+{ending}")


@dataclass(frozen=True, kw_only=True)
class Protocol:
    seeds: Whole = SEEDS("initialisations of the network; the authors' seeds")
    depths: Whole = DEPTHS("numbers of hidden layers, L; 0 is the linear model")
    block: Count = COUNT("samples in one NTK, n; `all`: one NTK of all samples")
    prove_smallest: bool = FLAG("prove λ_min of NTKs of more than 2,000 samples by a second factor")


@dataclass(frozen=True, kw_only=True)
class Network:
    """Beside activation and depth: the other fields of `ntkcond.networks.mlp.MLP`."""

    width: int = FROM_1("neurons in each hidden layer, m")
    trainable: str = choice("all", "first")("layers whose weights the NTK is of")
    bias: float = BETA(
        "β of biases, z = W α + β b with b ~ N(0, 1); the paper's networks have none"
    )


@dataclass(frozen=True, kw_only=True)
class Experiment(Network, Protocol):
    """Of NTKs. A data set may override it."""


@dataclass(frozen=True, kw_only=True)
class Engine:
    """What computes spectra. A data set may override it."""

    engine: str = choice("local", "scalapack")("spectra by a process each, or by MPI ranks")
    ranks: int = whole(1, 10**5, "a whole number of MPI ranks, from 1 to 100000")(
        "of `engine: scalapack`: MPI ranks of each job, a core each; rebuilds nothing"
    )


@dataclass(frozen=True, kw_only=True)
class Training:
    """SGD on one data set, which may override it."""

    depths: Whole = DEPTHS("numbers of hidden layers")
    activation: str = ACTIVATION("one activation")
    width: int = FROM_1("neurons in each hidden layer; else the data set's", default=None)
    bias: float = BETA("β; else the data set's", default=None)
    convention: str = choice("authors", "paper")("what the layers are divided by")
    loss: str = choice("cross_entropy", "square")("of the outputs f")
    seeds: Whole = SEEDS("of the initialisation and the order of the samples")
    learning_rates: Numbers = NUMBERS("all are tried, and all are in the results")
    batch: int = FROM_1("samples in a batch")
    epochs: int = FROM_1("epochs, at most")
    stop_below: float = number("a training loss; 0: train all epochs")(
        "a run ends after the first epoch whose mean training loss is below this"
    )
    tf32: bool = FLAG("on a GPU: products with 10-bit mantissas, several times as fast")


@dataclass(frozen=True, kw_only=True)
class AllTraining(Training):
    """With what is one for all data sets."""

    rate_for: str = choice("depth", "dataset")("one best rate for each depth, or for all")
    checkpoint_minutes: float = number("a number from 0 on; 0 is each epoch")(
        "a killed run resumes from its last checkpoint; 0: one for each epoch"
    )
    thresholds: Numbers = NUMBERS("training losses of `table_epochs`: how many epochs until each?")


@dataclass(frozen=True, kw_only=True)
class Theory:
    depths: Whole = DEPTHS("curves of fig1")
    activations: Words = ACTIVATIONS_("panels of fig_activations, inputs of norm 1")
    activation_depths: Whole = DEPTHS("curves of fig_activations")


@dataclass(frozen=True, kw_only=True)
class Sweeps:
    activation: str = ACTIVATION("of fig_width and fig_samples; fig_activations_ntk shows all")
    depths: Whole = DEPTHS("of fig_width and fig_samples; elsewhere those of the data sets")
    widths: Whole = WIDTHS("of fig_width, beside infinite width")
    sizes: Whole = SIZES("n of fig_samples, as far as the data set has as many samples")
    seeds: Whole = SEEDS("initialisations of fig_width and fig_samples")
    blocks: int = FROM_1("blocks of n samples at most, of fig_activations_ntk, too")


@dataclass(frozen=True, kw_only=True)
class Architectures:
    names: Words = list_of(choice(*ARCHITECTURES), "a list of networks, each named once", least=0)(
        "networks of fig_architectures; convolutional ones only for images"
    )
    own: Mapping[str, str] = mapping(
        text(f"{WORD}, and no network of ntkcond", rf"(?!(?:{'|'.join(ARCHITECTURES)})$){NAME}"),
        file_at("a Python file", r"\.py"),
        "names and Python files, such as {mine: mine.py}",
    )("more: a name and a Python file ([how](../docs/extending.md#a-network-of-your-own-one-file))")
    activations: Words = ACTIVATIONS_("each network with each of these")
    depths: Whole = DEPTHS("hidden layers, L")
    width: int = FROM_1("neurons, or channels, in each")
    bias: float = BETA("β of the network `biases`")
    seeds: Whole = SEEDS("initialisations")
    blocks: int = FROM_1("blocks of n samples, at most")


@dataclass(frozen=True, kw_only=True)
class Descent:
    activation: str = ACTIVATION("of fig_descent, fig_spectrum and fig_evolution")
    depths: Whole = DEPTHS("its depths")
    widths: Whole = WIDTHS("of fig_evolution, beside the data set's own")
    seeds: Whole = SEEDS("its initialisations")
    steps: int = whole(2)("its steps")


@dataclass(frozen=True, kw_only=True)
class SpeedOnLoss:
    learning_rates: Numbers = NUMBERS("in units of n/λ_max of each network's NTK of n samples")
    thresholds: Numbers = NUMBERS("training losses: how many epochs until each?")


@dataclass(frozen=True, kw_only=True)
class Speed:
    activations: Words = ACTIVATIONS_("of the networks of fig_speed and fig_predictors")
    depths: Whole = DEPTHS("their depths")
    widths: Whole = WIDTHS("their widths")
    seeds: Whole = SEEDS("of their initialisations and of the order of the samples")
    samples: Count = COUNT("training samples, the data set's first; the NTK is of a block of them")
    batch: int = FROM_1("samples in a step")
    epochs: int = FROM_1("at most; a run ends below the lowest threshold")
    cross_entropy: SpeedOnLoss = record(SpeedOnLoss)("`null` leaves it out", default=None)
    square: SpeedOnLoss = record(SpeedOnLoss)("`null` leaves it out", default=None)

    @property
    def losses(self) -> dict[str, SpeedOnLoss]:
        """Those that are not left out."""
        both = {"cross_entropy": self.cross_entropy, "square": self.square}
        return {loss: chosen for loss, chosen in both.items() if chosen}


@dataclass(frozen=True, kw_only=True)
class Entry(Engine, Experiment):
    """A data set. What is not given is None."""

    source: str = text("the name of a data set that ntkcond knows")(
        "which data set it is, if its name does not say so; two entries may have one source"
    )
    samples: Count = COUNT("number of training samples, or `all`")
    seed: int = SEED("of the choice and the order of the samples")
    unit_norm: bool = FLAG("divide each sample by its norm; most activations need it at m = ∞")
    distinct: bool = FLAG("leave out zero samples and those that repeat an earlier one")
    shape: Whole = list_of(FROM_1, IMAGE, 3, 3, same=True)("of an image: channels, height, width")
    training: Training = record(AllTraining, partial=True)("its own settings of `training`")
    scale: Numbers = INTERVAL("interval to which the range of values is mapped")
    hold_out: int = FROM_0("test samples to take from a set without a test split")
    features: int = FROM_1("number of features; of speech it must be mel × splice")
    file: str = file_at("a .npy, .npz or .h5 file")("a `.npy`, `.npz` or `.h5` file of your own")
    mirrors: Words = list_of(text("an address", r"https?://\S+"), "a list of addresses", same=True)(
        "addresses to download from"
    )
    subset: str = text("a folder of a corpus, such as dev-clean", "[A-Za-z0-9_-]+")(
        "folder `data_dir/LibriSpeech/<subset>`, complete or not; downloaded if missing"
    )
    mel: int = FROM_1("log-mel energies of a frame, 25 ms every 10 ms")
    splice: int = FROM_1("neighbouring frames in a sample")
    normalise: str = choice("utterance", "speaker", "global", "none")(
        "energies to mean 0 and variance 1 over these; `global`: the training samples"
    )
    labels: str = file_at("a file of phone labels")("file of phones; else labels are the speakers")
    bad_utterances: str = choice("refuse", "skip")("of damaged, too short, mislabelled ones")


DATASETS = list_of(
    text("the name of a data set"), "a list of at least one data set, each named once"
)
NOT_MISSING = r"(?!(?:NA|NULL|NaN|None|nan|null)$)"  # as tables are read


@dataclass(frozen=True, kw_only=True)
class Config(Engine, Experiment):
    data_dir: str = file_at("a folder for raw files")(
        "folder of raw files; missing ones are downloaded to it ([layout](../data/README.md))"
    )
    missing: str = choice("refuse", "skip")(
        "an unavailable data set stops its figures, or is left out ([how](#unavailable-data-sets))"
    )
    device: str = choice("auto", "cpu", "cuda")(
        "`auto` takes a CUDA GPU if available, one job at a time"
    )
    activations: Words = ACTIVATIONS_("activations of kernels, spectra and closest pairs")
    keep_kernels: bool = FLAG("`false` deletes each kernel file after its spectrum is computed")
    datasets: Mapping[str, Entry] = mapping(
        text(f"{WORD} (but not NA or nan)", NOT_MISSING + NAME), record(Entry, partial=True),
        "at least one data set with its settings", least=1,
    )("data sets by name")  # fmt: skip
    training: AllTraining = record(AllTraining)("plain SGD")
    theory: Theory = record(Theory)("infinite width")
    sweeps: Sweeps = record(Sweeps)("small kernels")
    architectures: Architectures = record(Architectures)("networks beside the paper's")
    descent: Descent = record(Descent)("full-batch gradient descent")
    speed: Speed = record(Speed, one_of=("cross_entropy", "square"))("SGD of many networks")
    figures: Mapping[str, Words] = mapping(
        text("the name of a figure"), DATASETS, "for each figure of data a list of its data sets"
    )("data sets of each figure")


def given(*records: object) -> dict:
    """What is set in them, by name; the last one that has a setting decides."""
    return {k: v for one in records if one for k, v in vars(one).items() if v is not None}


def names_of(of: type) -> set[str]:
    """Of its settings."""
    return {field.name for field in dataclasses.fields(of)}


def part(of: type[T], *records: object) -> T:
    """A dataclass from what is set in others (`given`)."""
    values = given(*records)
    return of(**{field.name: values[field.name] for field in dataclasses.fields(of)})  # type: ignore[arg-type]
