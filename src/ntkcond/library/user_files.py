"""Networks, samples and labels from what a command line names: files, timm, transformers."""

import difflib
import importlib.util
import sys
import traceback
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ntkcond.run.errors import UserError

Build = Callable[[], nn.Module]
TIMM, HF = "timm:", "hf:"
KINDS = (".npy", ".npz", ".pt", ".pth", ".csv")


def builder(name: str) -> Build:
    """A function that builds the network: network() of a Python file, timm:NAME, hf:CONFIG; the
    last two with random weights, in eval mode. Raises UserError for what cannot be loaded."""
    if name.startswith(TIMM):
        return _of_timm(name.removeprefix(TIMM))
    if name.startswith(HF):
        return _of_transformers(name.removeprefix(HF))
    return _of_file(Path(name))


def samples(path: Path) -> Any:
    """What a network is called with: an array, or a dict or tuple of them. Raises UserError for a
    file that cannot be read."""
    found = _read(path)
    return next(iter(found.values())) if path.suffix == ".npz" and len(found) == 1 else found


def labels(path: Path, n: int) -> tuple[np.ndarray, str]:
    """Labels of n samples, (n, C), and what they are, in words: whole numbers are classes, a column
    each; others are targets. Raises UserError for labels of another number."""
    found = _read(path, whole=True)
    if isinstance(found, dict) and len(found) == 1:
        found = next(iter(found.values()))
    if isinstance(found, Tensor):
        found = (found.double() if found.is_floating_point() else found).detach().numpy()
    if not isinstance(found, np.ndarray):
        raise UserError(f"{path}: labels are one array, not a {type(found).__name__}")
    if found.ndim == 2 and found.shape[1] == 1:
        found = found[:, 0]
    if found.ndim not in (1, 2) or len(found) != n:
        raise UserError(f"{path}: has labels of shape {found.shape}, for {n} samples")
    if found.dtype.kind not in "biuf" or not np.isfinite(found).all():
        raise UserError(f"{path}: labels must be finite numbers")
    if found.ndim == 1 and found.dtype.kind in "biu":
        classes = np.unique(found)
        return (found[:, None] == classes).astype(float), f"{len(classes)} classes"
    found = found.reshape(n, -1).astype(float)
    return found, "targets" if found.shape[1] == 1 else f"targets with {found.shape[1]} columns"


def shape_in_words(found: Any) -> str:
    """300 × 1 × 8 × 8; of a dict input_ids 5 × 9, attention_mask 5 × 9."""
    if isinstance(found, dict):
        return ", ".join(f"{key} {shape_in_words(value)}" for key, value in found.items())
    if isinstance(found, list | tuple):
        return ", ".join(map(shape_in_words, found))
    return " × ".join(map(str, np.shape(found))) if np.ndim(found) else str(found)


def at_line(error: BaseException | None, path: Path) -> str:
    """The file, and the last of its lines that led to an exception: `cnn.py, line 7`."""
    file = str(path.absolute())
    if isinstance(error, SyntaxError) and error.filename == file:
        return f"{path}, line {error.lineno}"
    frames = traceback.extract_tb(error.__traceback__ if error else None)
    lines = [frame.lineno for frame in frames if frame.filename == file]
    return f"{path}, line {lines[-1]}" if lines else str(path)


def in_one_line(error: BaseException) -> str:
    """RuntimeError: what it says."""
    words = error.msg if isinstance(error, SyntaxError) else str(error)
    return " ".join(f"{type(error).__name__}: {words}".split()).removesuffix(":")


def require_file(path: Path) -> None:
    if not path.is_file():
        raise UserError(f"{path}: {'is a folder' if path.is_dir() else 'no such file'}")


# Networks.


def _of_file(path: Path) -> Build:
    require_file(path)
    if path.suffix != ".py":
        raise UserError(f"{path}: the network is a Python file, timm:NAME or hf:CONFIG")
    network = getattr(_imported(path), "network", None)
    if network is None:
        raise UserError(f"{path}: has no function network(), which is to return a torch.nn.Module")
    if isinstance(network, nn.Module) or not callable(network):
        raise UserError(f"{path}: network must be a function that returns a torch.nn.Module")

    def build() -> nn.Module:
        try:
            module = network()
        except (Exception, SystemExit) as error:  # a user's function may raise anything
            raise UserError(
                f"{at_line(error, path)}: network() raises {in_one_line(error)}"
            ) from error
        if not isinstance(module, nn.Module):
            kind = type(module).__name__
            raise UserError(f"{path}: network() returns a {kind}, not a torch.nn.Module")
        return module

    return build


def _imported(path: Path) -> ModuleType:
    """A Python file as a module; what is beside it can be imported, as if it were run."""
    name = f"ntkcond_network_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path.absolute())
    assert spec is not None and spec.loader is not None  # of .py
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # where dataclasses look for their annotations
    sys.path.insert(0, str(path.absolute().parent))
    writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise UserError(f"{at_line(error, path)}: {in_one_line(error)}") from error
    finally:
        sys.dont_write_bytecode = writes
    return module


def _of_timm(name: str) -> Build:
    with _needs("timm"):
        import timm
    if not timm.is_model(name):
        near = difflib.get_close_matches(name, timm.list_models(), 4)
        hint = f"Near it: {', '.join(near)}" if near else "timm.list_models() has all"
        raise UserError(f"timm has no model {name!r}. {hint}")

    def build() -> nn.Module:
        with _explained(f"{TIMM}{name} cannot be built"):
            module: nn.Module = timm.create_model(name, pretrained=False)
        return module.eval()

    return build


def _of_transformers(name: str) -> Build:
    with _needs("transformers"):
        import transformers
    transformers.logging.set_verbosity_error()
    try:
        config = transformers.AutoConfig.from_pretrained(name, local_files_only=True)
    except (OSError, ValueError) as error:  # its words are of a connection, which is not tried
        raise UserError(
            f"{HF}{name}: no such folder with a config.json that transformers knows, and no such"
            " model in the local cache"
        ) from error

    def build() -> nn.Module:
        with _explained(f"{HF}{name} cannot be built"):
            module: nn.Module = transformers.AutoModel.from_config(config).float()
        module.register_forward_hook(lambda module, inputs, output: output[0])  # of a dataclass
        return module.eval()

    return build


@contextmanager
def _needs(package: str) -> Iterator[None]:
    with _explained(f"{package} cannot be imported"):
        try:
            yield
        except ModuleNotFoundError as error:
            if error.name != package:
                raise
            raise UserError(f"{package} is not installed: pip install {package}") from error


@contextmanager
def _explained(words: str) -> Iterator[None]:
    """A UserError of whatever a package raises."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"{words} ({in_one_line(error)})") from error


# Arrays.


def _read(path: Path, whole: bool = False) -> Any:
    """whole: whether whole numbers of a CSV stay such."""
    require_file(path)
    if path.suffix not in KINDS:
        raise UserError(f"{path}: this kind of file is not known, but {', '.join(KINDS)}")
    try:
        if path.suffix == ".csv":
            return _csv(path, whole)
        if path.suffix in (".pt", ".pth"):
            return torch.load(path, map_location="cpu", weights_only=True)
        found = np.load(path, allow_pickle=False)
        if isinstance(found, np.ndarray):
            return found
        with found:
            return dict(found)
    except UserError:
        raise
    except (OSError, ValueError, EOFError, RuntimeError, zipfile.BadZipFile) as error:
        words = in_one_line(error)
        raise UserError(f"{path}: cannot be read as numbers ({words})") from error
    except Exception as error:  # torch's unpickler may raise anything
        raise UserError(
            f"{path}: torch.load takes tensors, and dicts and lists of them, alone: save those"
        ) from error


def _csv(path: Path, whole: bool) -> np.ndarray:
    """(n, d). A first line without numbers is a header."""
    lines = path.read_text("utf-8-sig").splitlines()
    header = bool(lines) and not any(map(_is_number, lines[0].split(",")))
    if not any(line.strip() for line in lines[header:]):
        raise UserError(f"{path}: has no numbers")
    whole = whole and not any(sign in line for line in lines[header:] for sign in ".eEnN")
    kind = np.dtype(np.int64 if whole else np.float64)
    return np.loadtxt(lines[header:], kind, None, ",", ndmin=2)


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
