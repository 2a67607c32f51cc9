"""Samples chosen, in random order, scaled, checked: results/datasets/{dataset}.h5."""

import hashlib
import json
from argparse import Namespace
from pathlib import Path

from ntkcond import command
from ntkcond.datasets import registry
from ntkcond.datasets.samples import choose, constant_features, defects, hold_out
from ntkcond.storage import write_hdf5


def main(arguments: Namespace) -> None:
    """Writes x, index and, where there are any, y, x_test, y_test (`ntkcond.datasets.samples`)."""
    a = arguments
    raw = registry.module(a.source).load(a.data_dir, vars(a))
    if a.hold_out:
        raw = hold_out(raw, a.hold_out, a.seed)
    chosen = choose(raw, a.samples, a.seed, a.scale)
    for defect in defects(chosen.x):
        command.log.warning("%s: %s", a.output.stem, defect)
    same, features = constant_features(chosen.x), chosen.x.shape[1]
    command.log.info("%s: %d of %d features are constant", a.output.stem, same, features)
    with write_hdf5(a.output, a.made_by) as file:
        for name, array in vars(chosen).items():
            if array is not None:
                file[name] = array
        file.attrs["source"] = raw.origin
        file.attrs["raw_files_sha256"] = json.dumps(raw.files)
        file.attrs["sha256"] = hashlib.sha256(chosen.x.tobytes()).hexdigest()
        file.attrs["preprocessing"] = (
            f"{len(chosen.x)} of {len(raw.x)} samples in random order (seed {a.seed}); "
            + (f"values {raw.value_range} scaled to {a.scale}" if a.scale else "not scaled")
        )


def interval(text: str) -> tuple[float, float]:
    """Two numbers: -1,1."""
    low, high = text.split(",")
    return float(low), float(high)


if __name__ == "__main__":
    options = command.parser(__doc__)
    options.add_argument("--source", required=True, choices=registry.SOURCES)
    options.add_argument("--data-dir", type=Path, default=Path("data"), help="raw files")
    options.add_argument("--samples", type=command.count_or_all, default="all")
    options.add_argument("--seed", type=int, default=0, help="of the order and choice of samples")
    options.add_argument("--scale", type=interval, metavar="LOW,HIGH", help="such as --scale=-1,1")
    options.add_argument("--features", type=int, help="synthetic: dimension of the inputs")
    options.add_argument("--hold-out", type=int, help="samples to set aside as a test split")
    options.add_argument("--file", type=Path, help="custom: .npy, .npz or .h5")
    command.run(main, options, chosen=lambda a: [registry.module_name(a.source)])
