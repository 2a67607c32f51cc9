"""`ntkcond MODEL SAMPLES`: κ of a network's NTK over initialisations, as text and as a page."""

import argparse
import importlib.util
import math
import re
import shlex
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch
from torch import nn
from tqdm import tqdm

from ntkcond.library import user_files
from ntkcond.library.closest import ClosestPair, closest_pair
from ntkcond.library.eigen import Interval, eigendecomposition
from ntkcond.library.of_module import kernel
from ntkcond.ntk.eigenvalues import RESOLVED, Spectrum
from ntkcond.run.errors import UserError

DTYPES = {"float64": torch.float64, "float32": torch.float32}
BAR_AFTER = 2  # seconds


@dataclass(frozen=True)
class Initialisation:
    """What was found of a network with the weights of one seed.

    values: all eigenvalues, ascending, as computed; error: none is further from the exact one. k:
    rows of the NTK for a sample. alignment: with the labels, if there are some.
    """

    seed: int
    spectrum: Spectrum
    values: np.ndarray
    error: float
    pair: ClosestPair
    k: int
    effective_rank: Interval
    alignment: Interval | None

    @property
    def unresolved(self) -> int:
        """Number of eigenvalues of which only an upper bound is known."""
        return int((self.values <= self.error).sum())

    @property
    def pair_in_words(self) -> str:
        """samples 3 and 8, 12.31°; of all outputs, with the output of each."""
        first, second = self.pair.first, self.pair.second
        if self.k == 1:
            return f"samples {first} and {second}"
        (i, a), (j, b) = divmod(first, self.k), divmod(second, self.k)
        return f"sample {i}, output {a}, and sample {j}, output {b}"

    @property
    def angle_in_words(self) -> str:
        pair = self.pair
        return in_known_digits(Interval(pair.angle_deg, pair.low_deg, pair.high_deg), "°")


@dataclass(frozen=True)
class Report:
    """All that the page shows. command: as it was typed; labels: what they are, in words."""

    model: str
    file: str
    shape: str
    weights: int
    labels: str
    command: str
    versions: dict[str, str]
    found: list[Initialisation]

    @property
    def summary(self) -> str:
        """κ of one initialisation; of several their verdicts, and between what κ is."""
        known = [one.spectrum for one in self.found]
        if len(known) == 1:
            return f"{known[0].known_kappa}, {known[0].verdict} ({known[0].grade})"
        verdicts = Counter(spectrum.verdict for spectrum in known)
        words = ", ".join(f"{count} of {len(known)} {word}" for word, count in verdicts.items())
        resolved = [spectrum.kappa for spectrum in known if spectrum.verdict == RESOLVED]
        if len(resolved) < 2:
            return words
        mean = math.exp(sum(map(math.log, resolved)) / len(resolved))
        low, high = min(resolved), max(resolved)
        return f"{words}: κ from {_plain(low)} to {_plain(high)}, geometric mean {_plain(mean)}"


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status: 2 after a mistake of the user, which stderr names in one line."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    try:
        _run(_options().parse_intermixed_args(arguments), arguments)
    except UserError as error:
        if "--debug" in arguments:
            raise
        print(f"ntkcond: {error}", file=sys.stderr)
        return 2
    return 0


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message}. ntkcond --help has all options")


def _options() -> argparse.ArgumentParser:
    options = _Parser(
        prog="ntkcond",
        description="The condition number of a network's neural tangent kernel, over"
        " initialisations.",
        allow_abbrev=False,
    )
    add = options.add_argument
    add("model", metavar="MODEL",
        help="a Python file whose network() returns a torch.nn.Module; timm:NAME; or hf:CONFIG, a"
        " folder with config.json or a name in the local cache")  # fmt: skip
    add("samples", metavar="SAMPLES", type=Path, help=".npy, .npz, .pt or .csv, a sample a row;"
        " a dict of arrays goes in as keywords")  # fmt: skip
    add("--labels", type=Path, metavar="FILE",
        help=".npy, .pt or .csv: whole numbers are classes, others targets")  # fmt: skip
    add("--seeds", type=_count, default=5, metavar="N", help="torch.manual_seed(0) to N − 1,"
        " each before a network is built (default: 5)")  # fmt: skip
    add("--output", type=Path, metavar="PAGE.html", help="an HTML page with pictures")
    add("--network-output", type=_output, metavar="K",
        help="the position of an output, trace (the sum of all outputs' NTKs) or all")  # fmt: skip
    add("--parameters", action="append", metavar="PATTERN",
        help="some weights only: a name, its beginning, or a pattern; may be repeated")  # fmt: skip
    add("--dtype", choices=list(DTYPES), default="float64", help="(default: float64)")
    add("--debug", action="store_true", help="a traceback in place of one line")
    add("--version", action="version", version=f"ntkcond {version('ntkcond')}")
    return options


def _count(word: str) -> int:
    if not word.isdecimal() or int(word) < 1:
        raise argparse.ArgumentTypeError(f"{word} is no number of initialisations, 1 or more")
    return int(word)


def _output(word: str) -> int | str:
    if word not in ("trace", "all") and not word.isdecimal():
        raise argparse.ArgumentTypeError(f"{word} is none of 0, 1, …, trace, all")
    return int(word) if word.isdecimal() else word


def _run(options: argparse.Namespace, arguments: Sequence[str]) -> None:
    if options.output:
        _require_page(options.output)
    if options.labels and options.network_output == "all":
        raise UserError("--labels need one row of the NTK a sample: use --network-output trace")
    build = user_files.builder(options.model)
    x = user_files.samples(options.samples)
    shape, found, weights = user_files.shape_in_words(x), [], 0
    y, kind = None, ""
    if options.labels:
        y, kind = user_files.labels(options.labels, _samples_of(x))
    print(f"{options.model}; {options.samples}: {shape}; {options.dtype}"
          + (f"; labels: {kind}" if kind else ""))  # fmt: skip
    bar = tqdm(range(options.seeds), "initialisations", leave=False, delay=BAR_AFTER, disable=None)
    for seed, module in _networks(build, bar):
        one = _found(seed, module, x, y, options)
        found.append(one)
        weights = sum(p.numel() for p in module.parameters())
        bar.clear()  # tqdm.write would show it before its delay
        print(_in_words(one), flush=True)
    report = Report(
        options.model, str(options.samples), shape, weights, kind,
        shlex.join(["ntkcond", *arguments]), _versions(options.model), found,
    )  # fmt: skip
    if len(found) > 1:
        print(report.summary)
    if options.output:
        from ntkcond.library.report_page import write

        write(report, options.output, x)
        print(f"page: {options.output}")


def _require_page(path: Path) -> None:
    """Before all is computed."""
    if importlib.util.find_spec("matplotlib") is None:
        raise UserError("--output needs Matplotlib: pip install matplotlib")
    if path.suffix not in (".html", ".htm"):
        raise UserError(f"--output {path}: the page is HTML: call it {path.stem}.html")
    if not path.absolute().parent.is_dir():
        raise UserError(f"--output {path}: no such folder: {path.parent}")


def _networks(build: user_files.Build, seeds: Iterable[int]) -> Iterator[tuple[int, nn.Module]]:
    """The network of each seed; only the first where all have the same weights."""
    first: list[torch.Tensor] = []
    for seed in seeds:
        torch.manual_seed(seed)
        module = build()
        weights = list(module.parameters())
        if seed and len(first) == len(weights) and all(map(torch.equal, first, weights)):
            print(
                "ntkcond: network() gives the same weights with each seed: only the first is shown",
                file=sys.stderr,
            )
            return
        yield seed, module
        first = first or [weight.detach().clone() for weight in weights]


def _found(
    seed: int, module: nn.Module, x: Any, y: np.ndarray | None, options: argparse.Namespace
) -> Initialisation:
    try:
        ntk = kernel(
            module, x, output=options.network_output, parameters=options.parameters,
            dtype=DTYPES[options.dtype],
        )  # fmt: skip
        eigen = eigendecomposition(ntk)
        pair = closest_pair(ntk)
    except UserError as error:
        raise UserError(_explained(error, options)) from error
    n = _samples_of(x)
    alignment = None if y is None else eigen.alignment(y)
    return Initialisation(
        seed, eigen.spectrum, eigen.values, eigen.error, pair, len(ntk) // n,
        eigen.effective_rank(), alignment,
    )  # fmt: skip


def _samples_of(x: Any) -> int:
    """Number of samples, if x is what the library takes."""
    while isinstance(x, dict | list | tuple) and len(x):
        x = next(iter(x.values())) if isinstance(x, dict) else x[0]
    return len(x) if np.ndim(x) else 0


def _explained(error: UserError, options: argparse.Namespace) -> str:
    """The library's message, with options of this command in place of its arguments."""
    words = str(error)
    if "output=lambda" in words:
        start = words.partition(": say which tensor")[0]
        return f"{options.model}: {start}: let the forward of its network() return one tensor"
    words = re.sub(r"output='?(\w+)'?", r"--network-output \1", words)
    words = re.sub(r"dtype=torch\.(\w+)", r"--dtype \1", words)
    if re.match(r"x\W", words):
        return f"{options.samples}: {words}"
    if error.__cause__ is not None and options.model.endswith(".py"):
        return f"{user_files.at_line(error.__cause__, Path(options.model))}: {words}"
    return f"{options.model}: {words}"


def _in_words(one: Initialisation) -> str:
    lines = [
        f"closest pair: {one.pair_in_words}, {one.angle_in_words}; effective rank"
        f" {in_known_digits(one.effective_rank)}"
    ]
    if one.alignment is not None:
        lines[0] += f"; alignment with labels {in_known_digits(one.alignment)}"
    if one.unresolved:
        count = f"{one.unresolved} of {len(one.values)} eigenvalues"
        lines.append(f"{count} are not above the error of the decomposition, {one.error:.2g}")
    return "\n".join([f"seed {one.seed}: {one.spectrum}", *(f"    {line}" for line in lines)])


def in_known_digits(number: Interval, unit: str = "") -> str:
    """In four digits; where these are not all known, with an interval that holds the number."""
    value, low, high = map(_plain, number)
    unit = f" {unit}" if unit and "e" in value else unit
    size = max(abs(number.low), abs(number.high))
    if low == high or not size:
        return f"{value}{unit}"
    step = 10.0 ** (math.floor(math.log10(size)) - 3)
    if number.high - number.low <= step / 50:  # only the edge between two last digits is inside
        return f"{value}{unit}"
    low, high = (_plain(end * step) for end in
                 (math.floor(number.low / step), math.ceil(number.high / step)))  # fmt: skip
    return f"{value}{unit} ({low} to {high})"


def _plain(value: float) -> str:
    """0.02530, 12.00, 51,290, 5.129e+08: four digits."""
    word = f"{value:#.4g}".rstrip(".")
    return f"{float(word):,.0f}" if 1e4 <= abs(value) < 1e7 else word


def _versions(model: str) -> dict[str, str]:
    names = ["ntkcond", "torch", "numpy", "scipy"]
    names += [n for n, sign in (("timm", user_files.TIMM), ("transformers", user_files.HF))
              if model.startswith(sign)]  # fmt: skip
    python = ".".join(map(str, sys.version_info[:3]))
    return {"Python": python, **{name: version(name) for name in names}}
