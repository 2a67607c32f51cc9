"""What every step's command line has in common: options, log, plain errors."""

import argparse
import ast
import contextlib
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import psutil

from ntkcond.errors import UserError
from ntkcond.provenance import code_digest
from ntkcond.storage import explained

log = logging.getLogger("ntkcond")
SECONDS_BETWEEN_LOOKS = 0.2  # at whether Snakemake lives
STARTED = "start-up %.2f s, work %.2f s"  # read by ntkcond.steps.costs


def parser(doc: str) -> argparse.ArgumentParser:
    """A parser with the options that every step has; `doc` is the step's docstring."""
    options = argparse.ArgumentParser(description=doc.splitlines()[0])
    options.add_argument("--output", type=Path, required=True, help="file to write")
    options.add_argument("--log", type=Path, help="also write messages to this file")
    options.add_argument(
        "--made-by",
        type=ast.literal_eval,
        metavar="DICT",
        help="what the output depends on, kept in it; Snakemake gives this",
    )
    return options


def add_computing(options: argparse.ArgumentParser) -> None:
    """--device and --threads, for the steps that compute."""
    options.add_argument("--device", default="auto", choices=["auto", "cpu", "cuda"])
    options.add_argument("--threads", type=int, help="default: all processors")


def add_network(options: argparse.ArgumentParser, activations: Iterable[str]) -> None:
    """The network that a kernel or an angle is of; activations: their names."""
    options.add_argument("--dataset", type=Path, required=True, help="results/datasets/*.h5")
    options.add_argument("--activation", required=True, choices=list(activations))
    options.add_argument("--depth", type=at_least(0), required=True, help="hidden layers")
    options.add_argument("--width", type=at_least(1), required=True, help="neurons in each")
    options.add_argument("--seeds", type=whole_numbers, required=True, help="such as 1,32,111")


def add_trainable(options: argparse.ArgumentParser, choices: Iterable[str]) -> None:
    """Whose gradients the NTK is of."""
    options.add_argument("--trainable", choices=list(choices), default="all", help="layers")


def add_mirrors(options: argparse.ArgumentParser) -> None:
    """Addresses of raw files, each for one source of data: --mirror mnist=https://…"""
    options.add_argument(
        "--mirror", type=lambda text: tuple(text.split("=", 1)), action="append", default=[],
        metavar="SOURCE=URL", help="tried in the order given, instead of the addresses known",
    )  # fmt: skip


def mirrors_of(arguments: argparse.Namespace, source: str) -> list[str]:
    """The addresses given for this source."""
    return [url for of, url in arguments.mirror if of == source]


def whole_numbers(text: str) -> list[int]:
    """A list of whole numbers: 1,32,111."""
    return [int(word) for word in text.split(",")]


def at_least(smallest: int) -> Callable[[str], int]:
    """A whole number from `smallest` on."""

    def number(text: str) -> int:
        if int(text) < smallest:
            raise argparse.ArgumentTypeError(f"{text} is below {smallest}")
        return int(text)

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
    options: argparse.ArgumentParser,
    chosen: Callable[[argparse.Namespace], list[str]] = lambda arguments: [],
) -> None:
    """Parses the command line and runs the step; a UserError becomes one line and exit status 1.

    chosen: dotted names of the modules that the step picks by its arguments.
    """
    try:
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # as ntkcond.steps has it meanwhile
            signal.signal(signal.SIGINT, signal.default_int_handler)
        arguments = options.parse_args()
        _end_with_snakemake()
        with _logging_to(arguments.log):
            _run(main, arguments, chosen(arguments))
    except UserError as error:  # there is no log to say it in
        sys.exit(f"ntkcond: {error}")
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)


def _run(
    main: Callable[[argparse.Namespace], None], arguments: argparse.Namespace, chosen: list[str]
) -> None:
    try:
        _refuse_other_code(arguments.made_by, chosen)
        started, ready = _seconds_old(), time.perf_counter()
        main(arguments)
        if started is not None:
            log.info(STARTED, started, time.perf_counter() - ready)
    except UserError as error:
        log.error("ntkcond: %s", error)
        sys.exit(1)
    except Exception as error:
        if _out_of_memory(error):
            log.error("ntkcond: out of memory. Lower block, samples or width in the config")
            sys.exit(1)
        log.exception("ntkcond: this should not happen; please report it with this log")
        sys.exit(2)


def _seconds_old() -> float | None:
    """Since this process was started; None where the system does not tell so (outside Linux)."""
    try:
        ticks = int(Path("/proc/self/stat").read_text("ascii").rpartition(")")[2].split()[19])
        return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, AttributeError):
        return None


def _refuse_other_code(made_by: dict | None, chosen: list[str]) -> None:
    """Raises UserError if the code is not that of which Snakemake took the digest when it started:
    what this step would write is then not what Snakemake will record."""
    step = sys.modules["__main__"].__spec__
    if made_by and step and made_by["code"] != code_digest(step.name, *chosen):
        raise UserError(
            "the code was changed after Snakemake had started. Run the same command again"
        )


def _end_with_snakemake() -> None:
    """Ends this process soon after the Snakemake that started it was killed: among the files of
    the next run, whose config may differ, an orphan must not write."""
    snakemake = int(os.environ.get("NTKCOND_SNAKEMAKE", 0))
    if not snakemake:
        return
    if os.getppid() != snakemake:  # wrapped by something, or orphaned while it was loading
        if not psutil.pid_exists(snakemake):
            sys.exit(1)
        return

    def watch() -> None:
        while os.getppid() == snakemake:
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
