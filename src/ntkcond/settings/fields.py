"""Every setting of the config: its kind, and a sentence on what it means.

The check at start, the JSON Schema and the tables of config/README.md come from here
(`ntkcond.pipeline.schema`).
"""

import dataclasses
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from ntkcond.networks.activations import ACTIVATIONS
from ntkcond.settings import kinds
from ntkcond.settings.kinds import FLAG, choice, list_of, mapping, number, record, text, whole

T = TypeVar("T")
Count: TypeAlias = int | str
Whole: TypeAlias = Sequence[int]
Numbers: TypeAlias = Sequence[float]
Words: TypeAlias = Sequence[str]
Rates: TypeAlias = Numbers | Mapping[int, Numbers]

FROM_0, FROM_1, FROM_2 = whole(0), whole(1), whole(2)
ALL = kinds.word("all")
COUNT = kinds.either("a whole number from 2 on, or all; at most 10⁹", ALL, FROM_2)
_SAMPLES = "a whole number from 2 to 10⁹, all, or a list of different ones, such as [512, all]"
SAMPLES = kinds.either(_SAMPLES, ALL, FROM_2, list_of(COUNT, _SAMPLES))
RANKS = whole(1, 10**5, "a whole number of MPI ranks, from 1 to 100000")
SEED = whole(0, 2**32 - 1, "a whole number from 0 to 2³² − 1")
_MANY = "a list of different whole numbers from 0 on, at least one, such as [1, 32]"
SEEDS, DEPTHS = list_of(SEED, _MANY), list_of(FROM_0, _MANY)
WIDTHS = list_of(FROM_1, "a list of different widths, such as [64, 512]")
SIZES = list_of(FROM_2, "a list of different numbers of samples, such as [16, 64]")
SHAPE = list_of(FROM_1, "channels, height and width, such as [1, 28, 28]", 3, 3, same=True)
ACTIVATION = kinds.known("the name of an activation", ACTIVATIONS)
NAMED = list_of(ACTIVATION, "a list of activations, each named once, such as [relu, linear]")
BETA = number("a number from 0 on, at most 10³⁰", 0)
LOSS = number("a training loss; 0: train all epochs", 0)
MINUTES = number("a number from 0 on; 0 is each epoch", 0)
ABOVE_0 = number("a number above 0, such as 0.001 or 1.0e-3, at most 10³⁰", math.ulp(0))
NUMBERS = list_of(ABOVE_0, "a list of different numbers above 0, at least one, such as [0.5, 1, 2]")
_RATES = f"{NUMBERS.must}; or such a list for each depth: {{1: [64], 3: [32]}}"
RATES = kinds.either(_RATES, NUMBERS, kinds.by_number(FROM_1, NUMBERS))
FINITE = number("a number", -sys.float_info.max, sys.float_info.max)
INTERVAL = list_of(FINITE, "an interval, such as [-1, 1]", 2, 2, same=True)
REFUSE = choice("refuse", "skip")
# `ntkcond.networks.architectures` has them; steps that read this would depend on its code.
ARCHITECTURES = (
    "plain", "biases", "residual", "residual_linear", "normalised", "convolutional", "transformer",
)  # fmt: skip
NETWORKS = list_of(choice(*ARCHITECTURES), "a list of networks, each named once", least=0)
SOURCE = text("the name of a data set that ntkcond knows")
SUBSET = text("a folder of a corpus, such as dev-clean", "[A-Za-z0-9_-]+")
ADDRESSES = list_of(text("an address", r"https?://\S+"), "a list of addresses", same=True)
NORMALISE = choice("utterance", "speaker", "global", "none")
_PATH, _NAME = r"[^{}\x00-\x1f\x7f]+", "[A-Za-z][A-Za-z0-9_-]{0,39}"  # Snakemake takes { }
_NO_BRACES = "without {, } and line breaks in its path"
FOLDER = text(f"a folder for raw files, {_NO_BRACES}", _PATH)
LABELS = text(f"a file of phone labels, {_NO_BRACES}", _PATH)
FILE = text(f"a .npy, .npz or .h5 file, {_NO_BRACES}", _PATH)
PYTHON = text(f"a Python file, {_NO_BRACES}", rf"{_PATH}\.py")
_NAMED = "a name of letters, digits, _ and -, at most 40, that begins with a letter"
OWN = text(f"{_NAMED}, and no known network", rf"(?!(?:{'|'.join(ARCHITECTURES)})$){_NAME}")
# Tables read these words as missing.
DATASET = text(f"{_NAMED} (but not NA or nan)", rf"(?!(?:NA|NULL|NaN|None|nan|null)$){_NAME}")
KEPT = list_of(text("the name of an artefact"), "a list of artefacts, each named once", least=0)
SHOWN = list_of(text("the name of a data set"), "a list of at least one data set, each named once")


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """What NTKs are computed, and how λ_min is proved."""

    seeds: Whole = SEEDS("initialisations of the network; the authors' seeds")
    depths: Whole = DEPTHS("numbers of hidden layers, L; 0 is the linear model")
    block: Count = COUNT("samples in one NTK, n; `all`: one NTK of all samples")
    prove_smallest: bool = FLAG("prove λ_min of NTKs of more than 2,000 samples by a second factor")


@dataclass(frozen=True, kw_only=True)
class Network:
    """A network, beside its activation and depth."""

    width: int = FROM_1("neurons in each hidden layer, m")
    trainable: str = choice("all", "first")("layers whose weights the NTK is of")
    bias: float = BETA(
        "β of biases, z = W α + β b with b ~ N(0, 1); the paper's networks have none"
    )


@dataclass(frozen=True, kw_only=True)
class Experiment(Network, Protocol):
    """Settings of NTKs; a data set may override it."""


@dataclass(frozen=True, kw_only=True)
class Engine:
    """What computes spectra; a data set may override it."""

    engine: str = choice("local", "scalapack")("spectra by a process each, or by MPI ranks")
    ranks: int = RANKS("of `scalapack`: MPI ranks of each job, a core each; rebuilds nothing")


@dataclass(frozen=True, kw_only=True)
class Training:
    """SGD on one data set, which may override it."""

    depths: Whole = DEPTHS("numbers of hidden layers")
    activation: str = ACTIVATION("of the networks that are trained")
    width: int = FROM_1("neurons in each hidden layer; else the data set's", None)
    bias: float = BETA("β; else the data set's", None)
    convention: str = choice("authors", "paper")("what the layers are divided by")
    loss: str = choice("cross_entropy", "square")("of the outputs f")
    seeds: Whole = SEEDS("of the initialisation and the order of the samples")
    learning_rates: Rates = RATES("all are tried, and all are in the results")
    batch: int = FROM_1("samples in a batch")
    epochs: int = FROM_1("epochs, at most")
    stop_below: float = LOSS("a run ends after the first epoch with a mean training loss below it")
    tf32: bool = FLAG("on a GPU: products with 10-bit mantissas, several times as fast")


@dataclass(frozen=True, kw_only=True)
class AllTraining(Training):
    """SGD, with what is one for all data sets."""

    rate_for: str = choice("depth", "dataset")("one best rate for each depth, or for all")
    checkpoint_minutes: float = MINUTES(
        "a killed run resumes from a checkpoint; 0: one for each epoch"
    )
    thresholds: Numbers = NUMBERS("training losses of `table_epochs`: how many epochs until each?")
    planned_tests: int = FROM_0(
        "of `table_depth`: its p are corrected for as many rows, if it has fewer"
    )


@dataclass(frozen=True, kw_only=True)
class Theory:
    """Curves at infinite width."""

    depths: Whole = DEPTHS("curves of fig1")
    activations: Words = NAMED("panels of fig_activations, inputs of norm 1")
    activation_depths: Whole = DEPTHS("curves of fig_activations")


@dataclass(frozen=True, kw_only=True)
class Sweeps:
    """Small kernels over widths, n and activations."""

    activation: str = ACTIVATION(
        "of fig_width, fig_samples and fig_lambda_min; fig_activations_ntk shows all"
    )
    depths: Whole = DEPTHS("of these figures and fig_when_data")
    widths: Whole = WIDTHS("of fig_width and fig_lambda_min, beside infinite width")
    sizes: Whole = SIZES("n of fig_samples and fig_lambda_min, as far as the data set has as many")
    seeds: Whole = SEEDS("initialisations of these figures and fig_when_data")
    blocks: int = FROM_1("blocks of n samples at most, of fig_activations_ntk, too")


@dataclass(frozen=True, kw_only=True)
class Architectures:
    """Networks beside the paper's."""

    names: Words = NETWORKS("networks of fig_architectures; the last two only for images")
    own: Mapping[str, str] = mapping(OWN, PYTHON, "names and Python files, as {mine: mine.py}")(
        "more: a name and a [Python file](../docs/extending.md#a-network-of-your-own-one-file)"
    )
    activations: Words = NAMED("each network with each of these")
    depths: Whole = DEPTHS("hidden layers, L")
    width: int = FROM_1("neurons, or channels, in each")
    bias: float = BETA("β of the network `biases`")
    seeds: Whole = SEEDS("initialisations")
    blocks: int = FROM_1("blocks of n samples, at most")


@dataclass(frozen=True, kw_only=True)
class Descent:
    """Full-batch gradient descent on the square loss of one block."""

    activation: str = ACTIVATION("of fig_descent, fig_spectrum and fig_evolution")
    depths: Whole = DEPTHS("numbers of hidden layers")
    widths: Whole = WIDTHS("of fig_evolution, beside the data set's own")
    seeds: Whole = SEEDS("initialisations")
    steps: int = FROM_2("steps of gradient descent")


@dataclass(frozen=True, kw_only=True)
class SpeedOnLoss:
    """Learning rates and thresholds of one loss."""

    learning_rates: Numbers = NUMBERS("in units of n/λ_max of each network's NTK of n samples")
    thresholds: Numbers = NUMBERS("training losses: how many epochs until each?")


@dataclass(frozen=True, kw_only=True)
class Speed:
    """SGD of many networks, and what their NTKs say of its speed."""

    activations: Words = NAMED("of the networks of fig_speed and fig_predictors")
    depths: Whole = DEPTHS("numbers of hidden layers")
    widths: Whole = WIDTHS("neurons in each hidden layer")
    seeds: Whole = SEEDS("of the initialisations and of the order of the samples")
    samples: Count = COUNT("training samples, the data set's first; the NTK is of a block of them")
    batch: int = FROM_1("samples in a step")
    epochs: int = FROM_1("at most; a run ends below the lowest threshold")
    cross_entropy: SpeedOnLoss = record(SpeedOnLoss)("on this loss", None)
    square: SpeedOnLoss = record(SpeedOnLoss)("on this loss", None)


@dataclass(frozen=True, kw_only=True)
class Entry(Engine, Experiment):
    """A data set; what is not set is None."""

    source: str = SOURCE("which data set it is, if its name does not say so")
    samples: Count | Sequence[Count] = SAMPLES(
        "number of training samples, or `all`; a list makes a data set for each"
    )
    seed: int = SEED("of the choice and the order of the samples")
    unit_norm: bool = FLAG("divide each sample by its norm; most activations need it at m = ∞")
    distinct: bool = FLAG("leave out zero samples and those that repeat an earlier one")
    shape: Whole = SHAPE(
        "of an image, for convolutional networks and transformers: channels, height and width;"
        " your own images need it, too"
    )
    training: AllTraining = record(AllTraining, partial=True)("its own settings of `training`")
    scale: Numbers = INTERVAL("interval to which the range of values is mapped")
    hold_out: int = FROM_0("test samples to take from a set without a test split")
    features: int = FROM_1("number of features; of speech it must be mel × splice")
    file: str = FILE("a `.npy`, `.npz` or `.h5` file of your own")
    mirrors: Words = ADDRESSES("addresses to download from, instead of the publishers'")
    subset: str = SUBSET("folder `data_dir/LibriSpeech/<subset>`, complete or not, or downloaded")
    mel: int = FROM_1("log-mel energies of a frame, 25 ms every 10 ms")
    splice: int = FROM_1("neighbouring frames in a sample")
    normalise: str = NORMALISE(
        "energies to mean 0, variance 1; `global`: over all training samples"
    )
    labels: str = LABELS("file of phones; else the labels are the speakers")
    bad_utterances: str = REFUSE("of damaged, too short, mislabelled ones")


@dataclass(frozen=True, kw_only=True)
class Config(Engine, Experiment):
    """All settings."""

    data_dir: str = FOLDER("folder of raw files, to which missing ones are downloaded")
    device: str = choice("auto", "cpu", "cuda")(
        "`auto` takes a GPU if available, a job at a time, but for kernels of at most 2,000 samples"
    )
    own_activations: Mapping[str, str] = mapping(
        OWN, PYTHON, "names and Python files, as {silu: silu.py}"
    )("more: a name and a [Python file](../docs/extending.md#an-activation-of-your-own-one-file)")
    activations: Words = NAMED("activations of kernels, spectra and closest pairs")
    keep_kernels: bool = FLAG(
        "`false` deletes a kernel's file after its spectrum; above 2,000 samples there is none"
    )
    datasets: Mapping[str, Entry] = mapping(
        DATASET, record(Entry, partial=True), "at least one data set with its settings", least=1
    )("data sets by name")
    training: AllTraining = record(AllTraining)("plain SGD")
    theory: Theory = record(Theory)("infinite width")
    sweeps: Sweeps = record(Sweeps)("small kernels")
    architectures: Architectures = record(Architectures)("networks beside the paper's")
    descent: Descent = record(Descent)("full-batch gradient descent")
    speed: Speed = record(Speed, one_of=("cross_entropy", "square"))("SGD of many networks")
    figures: Mapping[str, Words] = mapping(
        text("the name of a figure"), SHOWN, "for each figure of data a list of its data sets"
    )("data sets of each figure")
    keep: Words = KEPT("artefacts that a study keeps in git (studies/README.md)")


def names_of(of: type) -> list[str]:
    return [field.name for field in dataclasses.fields(of)]


# Settings of jobs that the config has for several at once, or by another name.
OF_JOBS = {
    "depth": FROM_0("hidden layers, L"),
    "architecture": text("the name of a network")("of `ntkcond.networks.modules`, or a user's own"),
    "samples": COUNT("number of samples, or all"),
    "learning_rates": NUMBERS("all are tried"),
    "widths": list_of(
        kinds.either("a width or inf", kinds.word("inf", math.inf), FROM_1), "a list of widths"
    )("inf: infinite width"),
    "sizes": list_of(COUNT, "a list of numbers of samples")("samples in one NTK, n"),
    "blocks": kinds.either("a number of blocks, or all", ALL, FROM_1)("of n samples, at most"),
    "rules": list_of(choice("common", "own"), "a list of these")(
        "of the learning rate: one for all depths, 1/λ_max of each"
    ),
    "most": FROM_2("samples, at most"),
}


def kind_of(name: str) -> tuple[kinds.Kind, str]:
    """The kind of a setting of a job, and what it means."""
    sections = (Experiment, Training, AllTraining, Entry, Speed, Descent, Architectures)
    fields = [field for of in sections for field in dataclasses.fields(of) if field.name == name]
    metadata = OF_JOBS[name].metadata if name in OF_JOBS else fields[0].metadata
    return metadata["kind"], metadata["meaning"]


def is_float(kind: kinds.Kind) -> bool:
    """Whether its values, or the entries of a list, need not be whole."""
    return kind.schema.get("items", kind.schema).get("type") == "number"


def set_values(*records: object) -> dict:
    """What is set in them, by name; the last one that has a setting decides."""
    return {k: v for one in records if one for k, v in vars(one).items() if v is not None}


def part(of: type[T], *records: object) -> T:
    """A dataclass from what is set in others (`set_values`)."""
    values = set_values(*records)
    return of(**{name: values[name] for name in names_of(of)})
