"""An NTK as a value: a matrix with what is known of its error, which a file keeps too."""

import importlib
import json
import math
import os
import tempfile
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from torch import Tensor

from ntkcond.ntk.rounding import ESTIMATED, PROVED
from ntkcond.run.errors import UserError
from ntkcond.run.seal import is_whole, seal

if TYPE_CHECKING:  # a plain `Kernel` is one of either kind of matrix
    from typing_extensions import TypeVar as WithDefault

    Matrix = WithDefault(
        "Matrix", bound=np.ndarray | Tensor, covariant=True, default=np.ndarray | Tensor
    )
else:
    Matrix = TypeVar("Matrix", covariant=True)

UNCERTIFIED = "none"  # grade of a kernel whose error is not known
FORMAT = "ntkcond kernel 1"


@dataclass(frozen=True, repr=False, eq=False)
class Kernel(Generic[Matrix]):
    """An NTK with what is known of its error: what `kernel` gives.

    It has `shape`, `len`, `@` and indices of its matrix, and is one for NumPy. In annotations
    `Kernel` is either kind, `Kernel[np.ndarray]` and `Kernel[torch.Tensor]` are one.

    Attributes
    ----------
    matrix : (n, n) array or tensor
        Exactly symmetric; or (n₁, n₂), of two sets of samples; (n k, n k) for all k outputs,
        sample by sample.
    error : float
        The Frobenius norm of its rounding error is at most this, as far as an estimate can say
        (`kernel`); NaN if it was not estimated.
    rank_bound : int
        Its rank is at most this: the number of weights, of distinct samples.
    layerwise, by_jacobian : tuple of str
        Names of the parameters whose gradients one backward pass of all samples gave, and of the
        others.
    kinks : int
        Preactivations so near a kink of their activation, as ReLU's, that rounding may have put
        them on its other side.
    grade : str
        "estimated"; "proved" of a given matrix; "none" without an error.
    two_sets : bool
        Whether rows and columns are different samples.
    made : dict
        What it was made of, and by what.

    Examples
    --------
    >>> import numpy as np, torch, ntkcond
    >>> kernel = ntkcond.kernel(torch.nn.Linear(3, 1), torch.eye(3))
    >>> kernel.shape, len(kernel), float(kernel[0, 0]), np.asarray(kernel).sum()
    ((3, 3), 3, 2.0, np.float64(12.0))
    """

    matrix: Matrix
    error: float
    rank_bound: int
    layerwise: tuple[str, ...]
    by_jacobian: tuple[str, ...]
    kinks: int = 0
    grade: str = ESTIMATED
    two_sets: bool = False
    made: dict[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        rows, columns = self.shape
        kind = str(self.matrix.dtype).removeprefix("torch.")
        known = f"error {self.error:.2g} ({self.grade})"
        if self.grade == UNCERTIFIED:
            known = "no certificate"
        kinks = f", {self.kinks} kinks" if self.kinks else ""
        return f"Kernel({rows} × {columns}, {kind}, {known}, rank ≤ {self.rank_bound}{kinks})"

    @property
    def shape(self) -> tuple[int, int]:
        rows, columns = self.matrix.shape
        return rows, columns

    def __len__(self) -> int:
        return len(self.matrix)

    def __getitem__(self, index: Any) -> Any:
        return self.matrix[index]

    def __matmul__(self, other: Any) -> Any:
        return self.matrix @ (other.matrix if isinstance(other, Kernel) else other)

    def __rmatmul__(self, other: Any) -> Any:
        return other @ self.matrix

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        matrix = self.matrix.detach().cpu() if isinstance(self.matrix, Tensor) else self.matrix
        array = np.asarray(matrix, dtype=dtype)
        return array.copy() if copy else array

    def save(self, path: str | Path) -> None:
        """Writes an HDF5 file that `ntkcond.load` reads: the matrix, and all that is known of it.

        The file is there whole or not at all.

        Parameters
        ----------
        path : str or Path
            The file, which is overwritten.

        Raises
        ------
        UserError
            If it cannot be written, or without h5py.

        Examples
        --------
        >>> import tempfile, torch, ntkcond
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     ntkcond.kernel(torch.nn.Linear(3, 1), torch.eye(3)).save(f"{folder}/k.h5")
        """
        h5 = _h5py()
        path = Path(path)
        known = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "matrix"}
        try:
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
            temporary = Path(name)
            try:
                os.close(handle)
                with h5.File(temporary, "w") as file:
                    file.attrs["format"], file.attrs["known"] = FORMAT, json.dumps(known)
                    file["matrix"] = np.asarray(self)
                seal(temporary)
                temporary.replace(path)
            finally:
                temporary.unlink(missing_ok=True)
        except OSError as error:
            raise UserError(f"{path} cannot be written: {error.strerror or error}") from error

    def plot(self, ax: Any = None) -> Any:  # Axes: no step's result depends on Matplotlib
        """Draws all eigenvalues, as `Eigendecomposition.plot`.

        Parameters
        ----------
        ax : matplotlib.axes.Axes
            New ones by default.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        UserError
            As `condition_number` does, and without Matplotlib.

        Examples
        --------
        >>> import torch, ntkcond
        >>> ax = ntkcond.kernel(torch.nn.Linear(3, 1), torch.eye(3)).plot()
        >>> ax.get_ylabel()
        'eigenvalue'
        """
        eigen = importlib.import_module("ntkcond.library.eigen")  # by words: no step depends on it
        return eigen.eigendecomposition(self).plot(ax)


def load(path: str | Path) -> Kernel[np.ndarray]:
    """A kernel that `Kernel.save` wrote, with its error, grade, rank bound and what made it.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    Kernel
        With a matrix of NumPy.

    Raises
    ------
    UserError
        If there is no such file, if it has changed since, or is another file.

    Examples
    --------
    >>> import tempfile, torch, ntkcond
    >>> kernel = ntkcond.kernel(torch.nn.Linear(3, 1), torch.eye(3))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     kernel.save(f"{folder}/k.h5")
    ...     ntkcond.load(f"{folder}/k.h5").error == kernel.error
    True
    """
    h5, path = _h5py(), Path(path)
    try:
        if not is_whole(path):
            raise UserError(f"{path} has changed since it was written: save the kernel again")
        with h5.File(path, "r") as file:
            if file.attrs.get("format") != FORMAT:
                raise UserError(f"{path} is no kernel that Kernel.save of this version wrote")
            known = json.loads(file.attrs["known"])
            matrix = file["matrix"][:]
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except OSError as error:
        raise UserError(f"{path} is no HDF5 file that can be read: {error}") from error
    for name in ("layerwise", "by_jacobian"):
        known[name] = tuple(known[name])
    loaded = Kernel(matrix, **known)
    if loaded.grade not in (ESTIMATED, PROVED, UNCERTIFIED) or not (
        loaded.error >= 0 or (loaded.grade == UNCERTIFIED and math.isnan(loaded.error))
    ):
        raise UserError(f"{path} has no error that could be one: it was written by another program")
    return loaded


def _h5py() -> Any:
    try:
        import h5py
    except ImportError as error:
        raise UserError("kernels are kept in HDF5: pip install h5py") from error
    return h5py
