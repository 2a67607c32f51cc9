"""Samples chosen, in random order, scaled, checked: results/datasets/{dataset}.h5."""

import hashlib
import json
from argparse import Namespace
from pathlib import Path

from ntkcond.datasets import registry, samples
from ntkcond.run import command
from ntkcond.run.files import write_hdf5


def main(arguments: Namespace) -> None:
    """Writes x, the origin of each sample and, if available, y, x_test, y_test
    (`ntkcond.datasets.samples`)."""
    a = arguments
    chosen = choose(a)
    if a.unit_norm:
        chosen = samples.with_unit_norm(chosen)
    if a.distinct:
        chosen = samples.distinct(chosen)
    for kind, count in chosen.left_out.items():
        command.log.warning("%s: left out: %d %s", a.output.stem, count, kind)
    for defect in samples.defects(chosen.x):
        command.log.warning("%s: %s", a.output.stem, defect)
    constant, features = samples.constant_features(chosen.x), chosen.x.shape[1]
    command.log.info("%s: %d of %d features are constant", a.output.stem, constant, features)
    with write_hdf5(a.output, a.record) as file:
        arrays = {name: getattr(chosen, name) for name in ("x", "y", "x_test", "y_test")}
        for name, array in {**arrays, **chosen.origin}.items():
            if array is not None:
                file[name] = array
        file.attrs.update(chosen.about)
        file.attrs["left_out"] = json.dumps(chosen.left_out)
        file.attrs["sha256"] = hashlib.sha256(chosen.x.tobytes()).hexdigest()


def choose(a: Namespace) -> samples.Samples:
    """The samples that the arguments describe."""
    reader = registry.module(a.source)
    if registry.SOURCES[a.source].corpus:
        return reader.draw(a.corpus, a.data_dir, vars(a))
    raw = reader.load(a.data_dir, vars(a))
    if a.hold_out:
        raw = samples.hold_out(raw, a.hold_out, a.seed)
    return samples.choose(raw, a.samples, a.seed, a.scale)


def interval(text: str) -> tuple[float, float]:
    """Two numbers: -1,1."""
    low, high = text.split(",")
    return float(low), float(high)


if __name__ == "__main__":
    options = command.parser(__doc__)
    options.add_argument("--source", required=True, choices=registry.SOURCES)
    options.add_unrecorded("--data-dir", type=Path, default=Path("data"), help="raw files")
    options.add_argument("--samples", type=command.count_or_all, default="all", help="or all")
    options.add_argument("--seed", type=int, default=0, help="of the order and choice of samples")
    options.add_argument("--scale", type=interval, metavar="LOW,HIGH", help="such as --scale=-1,1")
    options.add_argument("--unit-norm", type=command.truth, help="divide each sample by its norm")
    options.add_argument("--distinct", type=command.truth, help="leave out repeats and zeros")
    options.add_argument("--features", type=int, help="dimension of the inputs")
    options.add_argument("--hold-out", type=int, help="samples to set aside as a test split")
    options.add_input("--file", help="custom: .npy, .npz or .h5")
    # for a corpus of speech
    options.add_input("--corpus", help="results/corpora/*.h5, its files")
    options.add_input("--labels", help="phone labels; default: the speaker")
    options.add_argument("--subset", help="such as train-clean-100")
    options.add_argument("--mel", type=command.at_least(1), help="filters of the filterbank")
    options.add_argument("--splice", type=command.at_least(1), help="frames in a sample")
    options.add_argument("--normalise", choices=["utterance", "speaker", "global", "none"])
    options.add_argument("--bad-utterances", choices=["refuse", "skip"], help="default: refuse")
    options.add_unrecorded("--threads", type=command.at_least(1), default=1)
    command.run(main, options, chosen=lambda a: [registry.module_name(a.source)])
