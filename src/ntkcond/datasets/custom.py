"""A user's own samples, from a .npy, .npz or .h5 file named in the config; kept as float32.

.npy: x. .npz and .h5: x, and optionally y, x_test, y_test. x is (n, d), or (n, …) to be flattened.
Nothing is unpickled.
"""

import zipfile
from pathlib import Path

import h5py
import numpy as np

from ntkcond.datasets.duplicates import first_of_each
from ntkcond.datasets.samples import Raw
from ntkcond.datasets.source import Source
from ntkcond.run.digests import sha256_of
from ntkcond.run.errors import UserError
from ntkcond.run.machine import available_memory
from ntkcond.run.progress import log
from ntkcond.run.units import size

SOURCE = Source(title="custom", options={"file", "scale", "hold_out"}, required={"file"})

ARRAYS = ("x", "y", "x_test", "y_test")


def load(data_dir: Path, options: dict) -> Raw:
    """options: file. Raises UserError that names the file and what is wrong with it."""
    path = Path(options["file"])
    arrays = _read(path)
    if "x" not in arrays:
        names = ", ".join(arrays) or "nothing"
        raise UserError(f"{path}: has no array named x, only {names}. Name the samples x")
    x, x_test = (_samples(path, name, arrays.get(name)) for name in ("x", "x_test"))
    if arrays["x"].ndim > 2:
        log.warning(
            "%s: samples of shape %s are kept as %d features. Networks see the image where the"
            " config has shape: %s",
            path, arrays["x"].shape[1:], x.shape[1], list(arrays["x"].shape[1:]),
        )  # fmt: skip
    if len(x) < 2:
        raise UserError(f"{path}: x has {len(x)} sample; a kernel needs at least two. Add samples")
    if x_test is not None and x_test.shape[1] != x.shape[1]:
        raise UserError(
            f"{path}: x has {x.shape[1]} features and x_test has {x_test.shape[1]}; make them equal"
        )
    y = _labels(path, "y", arrays.get("y"), len(x))
    y_test = _labels(path, "y_test", arrays.get("y_test"), 0 if x_test is None else len(x_test))
    limits, origin = (float(x.min()), float(x.max())), f"the user's own file {path.name}"
    _require_distinct(path, x, limits, options.get("scale"))
    return Raw(x, y, limits, origin, x_test, y_test, {path.name: sha256_of(path)})


def _read(path: Path) -> dict[str, np.ndarray]:
    if not path.is_file():
        raise UserError(
            f"{path}: {'is a folder' if path.is_dir() else 'no such file'}. Correct the data set's"
            " file in the config"
        )
    readers = {".npy": _read_npy, ".npz": _read_npz, ".h5": _read_hdf5, ".hdf5": _read_hdf5}
    if path.suffix not in readers:
        raise UserError(f"{path}: unknown kind of file. Use .npy, .npz or .h5")
    try:
        return readers[path.suffix](path)
    except Exception as error:  # damaged files make the readers raise anything
        reason = " ".join(str(error).split()) or type(error).__name__
        raise UserError(
            f"{path}: cannot be read as {path.suffix} ({reason}). Write plain numeric arrays, with"
            " numpy.save, numpy.savez or h5py"
        ) from error


def _read_npy(path: Path) -> dict[str, np.ndarray]:
    array = np.load(path, allow_pickle=False)
    if not isinstance(array, np.ndarray):
        raise ValueError("it is an .npz")
    return {"x": array}


def _read_npz(path: Path) -> dict[str, np.ndarray]:
    with zipfile.ZipFile(path):  # np.load would accept a .npy under this name
        pass
    with np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file.files if name in ARRAYS or "x" not in file}


def _read_hdf5(path: Path) -> dict[str, np.ndarray]:
    with h5py.File(path, "r", locking=False) as file:
        wanted = [name for name in file if name in ARRAYS or "x" not in file]
        return {name: _read_array(file, name) for name in wanted}


def _read_array(file: h5py.File, name: str) -> np.ndarray:
    linked = isinstance(file.get(name, getlink=True), h5py.ExternalLink)
    array = None if linked else file[name]
    if linked or (isinstance(array, h5py.Dataset) and (array.is_virtual or array.external)):
        raise ValueError(f"{name} stands in another file, whose changes would not be seen: copy it")
    if not isinstance(array, h5py.Dataset):
        raise ValueError(f"{name} is a group, not an array")
    if array.nbytes > available_memory():  # HDF5 fills missing chunks with zeros
        raise ValueError(f"{name} needs {size(array.nbytes)} of memory")
    values = np.asarray(array[()])
    if "MATLAB_class" in array.attrs:  # which writes the axes of an array in reverse order
        return np.squeeze(values.T) if name in ("y", "y_test") else values.T
    return values


def _samples(path: Path, name: str, array: np.ndarray | None) -> np.ndarray | None:
    if array is None:
        return None
    if array.ndim < 2 or array.size == 0:
        raise UserError(
            f"{path}: {name} has shape {array.shape}; it must be (samples, features), none 0"
        )
    if array.dtype.kind not in "fiub":
        raise UserError(f"{path}: {name} has dtype {array.dtype}; it must be real numbers")
    array = array.reshape(len(array), -1)
    bad = ~np.isfinite(array)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise UserError(
            f"{path}: {name} has {int(bad.sum())} values that are NaN or infinite, the first at row"
            f" {row}, column {column}. Remove or replace them"
        )
    return array


def _require_distinct(path: Path, x: np.ndarray, limits: tuple, scale: list | None) -> None:
    """Samples that differ must do so in float32, in which they are kept, once they are scaled."""
    if np.can_cast(x.dtype, np.float32):
        return
    kept = np.asarray(x, np.float64)
    if scale is not None and limits[0] < limits[1]:
        kept = (kept - limits[0]) / (limits[1] - limits[0]) * (scale[1] - scale[0]) + scale[0]
    with np.errstate(over="ignore"):  # said later
        kept = kept.astype(np.float32)
    lost = len(first_of_each(x)) - len(first_of_each(kept))
    if lost:
        raise UserError(
            f"{path}: {lost} samples that differ from all others become equal to one in float32, in"
            " which samples are kept. Take the mean off each feature, or set a scale such as"
            " [-1, 1]"
        )


def _labels(path: Path, name: str, array: np.ndarray | None, samples: int) -> np.ndarray | None:
    if array is None:
        return None
    if array.shape != (samples,):
        raise UserError(f"{path}: {name} has shape {array.shape}; it must be ({samples},)")
    if array.dtype.kind not in "iub":
        raise UserError(f"{path}: {name} has dtype {array.dtype}; labels must be integers")
    if array.size and int(array.max()) > np.iinfo(np.int64).max:
        raise UserError(f"{path}: {name} has labels above 2⁶³ − 1")
    return array
