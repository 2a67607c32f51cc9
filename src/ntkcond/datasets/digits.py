"""scikit-learn's digits: 1,797 real handwritten digits of 8 × 8 pixels that ship with the library.

From the UCI "Optical Recognition of Handwritten Digits" set (Alpaydin & Kaynak, 1998).
"""

from pathlib import Path

from sklearn.datasets import load_digits

from ntkcond.datasets.samples import Raw
from ntkcond.datasets.source import Source

SOURCE = Source(
    title="digits", samples=1797, features=64, shape=(1, 8, 8), options={"scale", "hold_out"}
)


def load(data_dir: Path, options: dict) -> Raw:
    """Grey levels 0..16, labels 0..9; no test split."""
    x, y = load_digits(return_X_y=True)
    return Raw(x, y, (0.0, 16.0), "scikit-learn's load_digits (UCI optical digits)")
