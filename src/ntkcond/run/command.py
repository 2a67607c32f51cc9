"""What every step's command line has in common: options, log, plain errors."""

import argparse
import contextlib
import json
import logging
import math
import os
import re
import signal
import sys
import sysconfig
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import psutil

from ntkcond.run.digests import STARTED, imported_modules, is_computed, module_file, sha256_of
from ntkcond.run.errors import UserError
from ntkcond.run.files import explained
from ntkcond.run.record import (
    canonical,
    files_of,
    input_digest,
    input_name,
    is_result,
    record,
    upstream,
)

log = logging.getLogger("ntkcond")
Number = TypeVar("Number", int, float)
PACKAGE = str(Path(__file__).parents[1])
SECONDS_BETWEEN_LOOKS = 0.2  # at whether Snakemake lives
OF_EACH_STEP = ("samples",)  # how many a step takes: of all that its input has
COSTS = "start-up %.2f s, work %.2f s, CPU %.2f s, peak memory %.0f MB"


class StepParser(argparse.ArgumentParser):
    """A step's command line, which knows what of it the output depends on: settings, added by
    `add_argument`, and the content of input files. Settings that are not given are None. The value
    of an input is a path, a list of them, or such lists by their names."""

    def __init__(self, description: str) -> None:
        super().__init__(description=description)
        self._inputs: list[str] = []
        self._unrecorded = {"help"}

    def add_input(self, *flags: str, **options) -> None:
        """An option that names a file, or files, to read."""
        self._inputs.append(self.add_argument(*flags, **{"type": Path, **options}).dest)

    def add_unrecorded(self, *flags: str, **options) -> None:
        """An option that changes no result."""
        self._unrecorded.add(self.add_argument(*flags, **options).dest)

    def record(self, arguments: argparse.Namespace, chosen: Sequence[str]) -> dict | None:
        """The record (`ntkcond.run.record`) of what this step writes, of an HDF5 file with the
        records of what it was made from as `upstream`; None where the process is no
        step. Raises UserError for an input that cannot be read, or that was made with another value
        of a setting that this step has too; an edited table; and if the code was changed since
        Snakemake read it, or since this process began to."""
        step = sys.modules["__main__"].__spec__
        if step is None or not step.name.startswith("ntkcond.steps."):
            return None
        modules = (step.name, *chosen)
        started = time.time() - (_seconds_old() or 0)
        started = min(started, float(os.environ.get(STARTED, started)))
        for module in filter(is_computed, imported_modules(*modules)):
            path = module_file(module)
            if path and path.stat().st_mtime > started:
                raise UserError(
                    f"{path}: was changed after the start of this run. Run the same command again"
                )
        settings = {
            name: value
            for name, value in vars(arguments).items()
            if name not in self._unrecorded and name not in self._inputs and value is not None
        }
        files: dict[str, dict[str, str]] = {}
        made_from: dict[str, dict] = {}
        for name in self._inputs:
            value = getattr(arguments, name)
            for option, paths in (value if isinstance(value, dict) else {name: value}).items():
                if paths:
                    paths = paths if isinstance(paths, list) else [paths]
                    files[option] = {}
                    for path in paths:
                        files[option][input_name(path)], made_with = _digest(path, settings)
                        if made_with and path.suffix == arguments.output.suffix == ".h5":
                            made_from |= {input_name(path): made_with, **upstream(path)}
        made = record(modules, settings, files)
        return {**made, "upstream": made_from} if made_from else made


def _require_made_with(path: Path, before: Mapping, settings: Mapping) -> None:
    """Raises UserError if a result was made with other settings than this step's, or than its name
    says. before: its settings."""
    named = {key: int(number) for key, number in re.findall(r"(depth|width)(\d+)$", path.stem)}
    for key, value in canonical({**settings, **named}).items():
        if key not in OF_EACH_STEP and before.get(key, value) != value:
            raise UserError(
                f"{path}: was made with {key} {before[key]}, not {value}. Delete it, and snakemake"
                " makes the right one"
            )


def _digest(path: Path, settings: Mapping) -> tuple[str, dict | None]:
    """`input_digest` of an input of a step with these settings."""
    try:
        digest, made_with = input_digest(path)
        if made_with and path.suffix == ".h5":
            _require_made_with(path, made_with.get("settings", {}), settings)
        if made_with and files_of(path).get(path.name, "") not in ("", sha256_of(path)):
            raise UserError(
                f"{path}: was changed since its rule wrote it. Delete it, and snakemake makes the"
                " right one"
            )
        return digest, made_with
    except OSError as error:
        hint = f"snakemake {path} makes it" if is_result(path) else "Correct its path"
        raise UserError(f"{path}: {(error.strerror or 'cannot be read').lower()}. {hint}") from None


def parser(doc: str) -> StepParser:
    """A parser with the options that every step has; `doc` is the step's docstring."""
    options = StepParser(doc.splitlines()[0])
    options.add_unrecorded("--output", type=Path, required=True, help="file to write")
    options.add_unrecorded("--log", type=Path, help="also write messages to this file")
    return options


def add_computing(options: StepParser, device: bool = True) -> None:
    """--device and --threads, for the steps that compute."""
    if device:
        options.add_unrecorded("--device", default="auto", choices=["auto", "cpu", "cuda"])
    options.add_unrecorded("--threads", type=int, help="default: all processors")


def add_values(options: StepParser, flag: str, about: str) -> None:
    """--settings NAME=JSON, for each value: a dict of them."""
    options.add_argument(flag, action=_Values, metavar="NAME=JSON", help=about)


class _Values(argparse.Action):
    def __call__(self, parser, namespace, values, option=None) -> None:
        name, _, text = values.partition("=")
        earlier = getattr(namespace, self.dest) or {}
        setattr(namespace, self.dest, {**earlier, name: json.loads(text)})


def add_mirrors(options: StepParser) -> None:
    """Addresses of raw files, each for one source of data: --mirror mnist=https://…"""
    options.add_unrecorded(
        "--mirror", type=lambda text: tuple(text.split("=", 1)), action="append", default=[],
        metavar="SOURCE=URL", help="tried in the order given, instead of the addresses known",
    )  # fmt: skip


def mirrors_of(arguments: argparse.Namespace, source: str) -> list[str]:
    """The addresses given for this source."""
    return [url for name, url in arguments.mirror if name == source]


def whole_numbers(text: str) -> list[int]:
    """A list of whole numbers: 1,32,111."""
    return [int(word) for word in text.split(",")]


def at_least(smallest: Number) -> Callable[[str], Number]:
    """A number from `smallest` on; a whole one if that is."""

    def number(text: str) -> Number:
        value = type(smallest)(text)
        if not smallest <= value < math.inf:
            raise argparse.ArgumentTypeError(f"{text} is not {smallest} or above")
        return value

    return number


def truth(text: str) -> bool:
    """True or False, as Snakemake writes them."""
    if text.lower() not in ("true", "false"):
        raise argparse.ArgumentTypeError(f"{text} is neither true nor false")
    return text.lower() == "true"


def count_or_all(text: str) -> int | str:
    """A number of samples, or "all"."""
    return text if text == "all" else at_least(2)(text)


def run(
    main: Callable[[argparse.Namespace], None],
    options: StepParser,
    chosen: Callable[[argparse.Namespace], list[str]] = lambda arguments: [],
) -> None:
    """Parses the command line and runs the step, with the record of what it writes as
    `arguments.record`; a UserError becomes one line and exit status 1.

    chosen: dotted names of the modules that the step picks by its arguments.
    """
    try:
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # as ntkcond.steps has it meanwhile
            signal.signal(signal.SIGINT, signal.default_int_handler)
        arguments = options.parse_args()
        _end_with_snakemake()
        with _logging_to(arguments.log):
            _run(main, options, arguments, chosen(arguments))
    except UserError as error:  # there is no log to say it in
        sys.exit(f"ntkcond: {error}")
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # while Python takes all apart


def _run(
    main: Callable[[argparse.Namespace], None],
    options: StepParser,
    arguments: argparse.Namespace,
    chosen: list[str],
) -> None:
    try:
        is_rank = getattr(arguments, "as_rank", False)  # the step that started it has the record
        arguments.record = None if is_rank else options.record(arguments, chosen)
        started, ready = _seconds_old(), time.perf_counter()
        main(arguments)
        if started is not None and not is_rank:
            log.info(COSTS, started, time.perf_counter() - ready, *_cpu_and_peak_memory_mb())
    except UserError as error:
        log.error("ntkcond: %s", error)
        sys.exit(1)
    except Exception as error:
        if _out_of_memory(error):
            log.error("ntkcond: out of memory. Lower block, samples or width in the config")
            sys.exit(1)
        log.error(
            "ntkcond: %s. Correct this line if it is yours; if not, please report it with this log",
            _where(error),
        )
        log.log(logging.INFO if arguments.log else logging.ERROR, "All of it:", exc_info=True)
        sys.exit(2)


def _where(error: Exception) -> str:
    """File and line, the last that is ours or a user's and no other package's; and the error."""
    others = tuple(sysconfig.get_paths()[name] for name in ("stdlib", "purelib", "platlib"))
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if f.filename.startswith(PACKAGE) or not f.filename.startswith(others)]
    place = (own or frames)[-1]
    words = " ".join("".join(traceback.format_exception_only(error)).split())
    return f"{place.filename}, line {place.lineno}: {words.rstrip('.')}"


def _seconds_old() -> float | None:
    """Since this process was started; None where the system does not tell so (outside Linux)."""
    try:
        ticks = int(Path("/proc/self/stat").read_text("ascii").rpartition(")")[2].split()[19])
        return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, AttributeError):
        return None


def _cpu_and_peak_memory_mb() -> tuple[float, float]:
    """CPU time and memory of this process and of MPI ranks that it started here: the sum, and the
    largest."""
    import resource

    ranks = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = time.process_time() + ranks.ru_utime + ranks.ru_stime
    return cpu, max(peak_memory_mb(), ranks.ru_maxrss * 1024 / 1e6)


def peak_memory_mb() -> float:
    """The peak of this process so far; NaN where the system does not tell so (outside Linux).
    getrusage would count what its parent had at the fork."""
    try:
        status = Path("/proc/self/status").read_text("ascii")
    except OSError:
        return math.nan
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024 / 1e6


def _end_with_snakemake() -> None:
    """Ends this process soon after the Snakemake that started it was killed: among the files of
    the next run, whose config may differ, an orphan must not write."""
    snakemake, shell = int(os.environ.get("NTKCOND_SNAKEMAKE", 0)), os.getppid()
    if not snakemake:
        return

    def is_alive() -> bool:
        with contextlib.suppress(psutil.Error):
            return psutil.Process(snakemake).status() != psutil.STATUS_ZOMBIE
        return False

    def watch() -> None:
        while os.getppid() == shell and is_alive():
            time.sleep(SECONDS_BETWEEN_LOOKS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _out_of_memory(error: Exception) -> bool:
    """torch raises a RuntimeError of its own on a CPU and on a GPU, known by name and words."""
    return (
        isinstance(error, MemoryError)
        or type(error).__name__ == "OutOfMemoryError"
        or "allocate memory" in str(error)
    )


@contextlib.contextmanager
def _logging_to(path: Path | None) -> Iterator[None]:
    """Warnings and errors on the terminal; in the log file, everything with its time. Raises
    UserError when the log file cannot be made."""
    logging.raiseExceptions = False  # a line that a full disk swallows is no reason to stop
    terminal = logging.StreamHandler()
    terminal.setLevel(logging.WARNING)
    terminal.setFormatter(logging.Formatter("%(message)s"))
    handlers: list[logging.Handler] = [terminal]
    if path is not None:
        with explained(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            file = logging.FileHandler(path, mode="w", encoding="utf-8")
        file.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%Y-%m-%d %H:%M:%S"))
        handlers.append(file)
    logging.basicConfig(level=logging.WARNING, handlers=handlers)
    log.setLevel(logging.INFO)  # others' details, such as of fonts, are noise
    try:
        yield
    finally:
        logging.shutdown()
