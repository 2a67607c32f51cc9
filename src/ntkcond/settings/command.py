"""What every step's command line has in common: options, log, plain errors."""

import argparse
import contextlib
import functools
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
from typing import Any

import psutil

from ntkcond.run.digests import sha256_of
from ntkcond.run.errors import UserError
from ntkcond.run.files import explained
from ntkcond.run.record import (
    CODE,
    canonical,
    files_of,
    input_digest,
    input_name,
    is_result,
    modules_of,
    name_of,
    record,
    short_digest,
)
from ntkcond.settings import own_activations
from ntkcond.settings.fields import is_float, kind_of
from ntkcond.settings.kinds import Kind

log = logging.getLogger("ntkcond")
PACKAGE = str(Path(__file__).parents[1])
SECONDS_BETWEEN_LOOKS = 0.2  # at whether Snakemake lives
STARTED = "NTKCOND_STARTED"  # in the environment: when Snakemake began to read the code
OF_EACH_STEP = ("samples",)  # how many a step takes: of all that its input has
COSTS = "start-up %.2f s, work %.2f s, CPU %.2f s, peak memory %.0f MB"


class StepParser(argparse.ArgumentParser):
    """A step's command line, which knows what of it the output depends on: settings, by the names
    and kinds of the config, and the content of input files. Settings that are not given are None.
    The value of an input is a path, a list of them, or such lists by their names."""

    def __init__(self, description: str) -> None:
        super().__init__(description=description)
        self._inputs: list[str] = []
        self._unrecorded = {"help"}

    def add_inputs(self, *names: str, optional: bool = False, **more) -> None:
        """Options that name files to read."""
        for name in names:
            action = self.add_argument(f"--{name}", **{"type": Path, "metavar": "FILE", **more})
            action.required = not optional
            self._inputs.append(name)

    def add_settings(self, *names: str, optional: bool = False, default: Any = None) -> None:
        """Options of which the output depends, as the config has them: --width=64, --seeds=1,32.
        One without a default is required, unless optional."""
        for name in names:
            kind, meaning = kind_of(name)
            self.add_argument(
                f"--{name.replace('_', '-')}", type=functools.partial(_parsed, kind, name),
                default=default, required=default is None and not optional, help=meaning,
            )  # fmt: skip

    def add_unrecorded(self, *flags: str, **options) -> None:
        """An option that changes no result."""
        self._unrecorded.add(self.add_argument(*flags, **options).dest)

    @property
    def settings(self) -> list[str]:
        """Names of the options that the output depends on."""
        names = [action.dest for action in self._actions]
        return [name for name in names if name not in {*self._unrecorded, *self._inputs}]

    def record(self, arguments: argparse.Namespace, chosen: Sequence[str]) -> dict | None:
        """The record (`ntkcond.run.record`) of what this step writes; None where the process
        is no step. Raises UserError for an input that cannot be read, or that was made with another
        value of a setting that this step has too; an edited table; and if the code was changed
        since Snakemake read it, or since this process began to."""
        step = sys.modules["__main__"].__spec__
        if step is None or not step.name.startswith("ntkcond.steps."):
            return None
        rule, artefact = step.name.rpartition(".")[2], getattr(arguments, "artefact", "")
        if artefact:
            rule = artefact if rule == "table" else f"draw_{artefact}"
        modules = modules_of(rule, artefact, chosen)
        started = time.time() - (_seconds_old() or 0)
        started = min(started, float(os.environ.get(STARTED, started)))
        for path in filter(None, map(CODE.file_of, CODE.modules(*modules))):
            if path.stat().st_mtime > started:
                raise UserError(
                    f"{path}: was changed after the start of this run. Run the same command again"
                )
        values = {name: getattr(arguments, name) for name in self.settings}
        settings = {name: value for name, value in values.items() if value is not None}
        files: dict[str, dict[str, str]] = {}
        names: dict[str, list[str]] = {}
        for option in self._inputs:
            value = getattr(arguments, option)
            for name, given in (value if isinstance(value, dict) else {option: value}).items():
                for path in given if isinstance(given, list) else [given] if given else []:
                    digest, made_with = _digest(path, settings)
                    files.setdefault(name, {})[input_name(path)] = digest
                    job = name_of(**made_with) if made_with else path.name
                    names.setdefault(name, []).append(job)
        wildcards = dict(word.split("=", 1) for word in arguments.wildcards)
        made = record(rule, wildcards, modules, settings, files)
        return made | ({"order": short_digest(names)} if artefact == rule else {})


def _require_made_with(path: Path, before: Mapping, settings: Mapping) -> None:
    """Raises UserError if a result was made with other settings than this step's, or than its name
    says. before: its settings."""
    words = f"{path.parent.name}/{path.stem}" if path.stem.startswith("seed") else path.stem
    named = {key: int(number) for key, number in re.findall(r"(depth|width)(\d+)\b", words)}
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
            _require_made_with(path, made_with["settings"], settings)
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
    options.add_unrecorded(
        "--wildcards",
        nargs="*",
        default=[],
        metavar="NAME=VALUE",
        help="of the rule, kept in the record",
    )
    options.add_inputs(
        own_activations.FLAG.removeprefix("--"), optional=True, action=_Files, type=str,
        metavar="NAME=FILE", help="an activation of your own",
    )  # fmt: skip
    return options


def add_computing(options: StepParser, device: bool = True) -> None:
    """--device and --threads, for the steps that compute."""
    if device:
        options.add_unrecorded("--device", default="auto", choices=["auto", "cpu", "cuda"])
    options.add_unrecorded("--threads", type=int, help="default: all processors")


def _parsed(kind: Kind, name: str, text: str) -> Any:
    """The value of a setting: a number or a word, or several with commas between."""

    def value(word: str) -> Any:
        try:
            return json.loads(word)
        except ValueError:
            return word

    one = value(text)
    try:
        checked = kind.check(one if kind.allows(one) else [value(w) for w in text.split(",")], name)
    except UserError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if isinstance(checked, list):
        return [float(entry) for entry in checked] if is_float(kind) else checked
    return float(checked) if is_float(kind) else checked


def add_values(options: StepParser, *names: str) -> None:
    """--settings NAME=JSON, for each value: a dict of them."""
    for name in names:
        options.add_argument(f"--{name}", action=_Values, metavar="NAME=JSON")


class _Values(argparse.Action):
    def __call__(self, parser, namespace, values, option=None) -> None:
        name, _, text = values.partition("=")
        earlier = getattr(namespace, self.dest) or {}
        setattr(namespace, self.dest, {**earlier, name: json.loads(text)})


class _Files(argparse.Action):
    """NAME=FILE, each time: a dict of lists of paths."""

    def __call__(self, parser, namespace, values, option=None) -> None:
        name, _, path = values.partition("=")
        earlier = getattr(namespace, self.dest) or {}
        setattr(namespace, self.dest, {**earlier, name: [Path(path)]})


def add_mirrors(options: StepParser) -> None:
    """Addresses of raw files, each for one source of data: --mirror mnist=https://…"""
    options.add_unrecorded(
        "--mirror", type=lambda text: tuple(text.split("=", 1)), action="append", default=[],
        metavar="SOURCE=URL", help="tried in the order given, instead of the addresses known",
    )  # fmt: skip


def mirrors_of(arguments: argparse.Namespace, source: str) -> list[str]:
    """The addresses given for this source."""
    return [url for name, url in arguments.mirror if name == source]


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
        own_activations.register(own_activations.named_in(sys.argv))  # whose names settings take
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
