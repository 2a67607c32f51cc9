"""The closest pair of gradients: results/angles/{dataset}/{activation}/depth{L}.h5."""

from argparse import Namespace

import torch

from ntkcond import command
from ntkcond.activations import ACTIVATIONS
from ntkcond.closest_pair import closest_pair
from ntkcond.duplicates import distinct_rows
from ntkcond.errors import UserError
from ntkcond.needs import angle_need
from ntkcond.network import TRAINABLE, initial_gradient_map
from ntkcond.progress import progress
from ntkcond.resources import require_memory, resolve_device, use_threads
from ntkcond.storage import read_hdf5, write_hdf5


def main(arguments: Namespace) -> None:
    """Writes min_angle_deg (seeds,), closest_pair (seeds, 2), rows of the data set's x, and
    zero_gradients (seeds,), how many samples were left out for theirs."""
    a = arguments
    device = resolve_device(a.device)
    use_threads(a.threads)
    with read_hdf5(a.dataset) as file:
        x = file["x"][:]
    samples, features = x.shape
    distinct = distinct_rows(x)
    if len(distinct.index) < 2:
        raise UserError(f"{a.dataset}: fewer than two different samples, so there is no angle")
    require_memory(angle_need(samples, features, a.depth, a.width), device)
    inputs = torch.from_numpy(x[distinct.index]).to(device, torch.float64)

    angles, pairs, vanished = [], [], []
    label = f"angle {a.dataset.stem} {a.activation} L={a.depth}"
    for seed in progress(a.seeds, len(a.seeds), label):
        gradients = initial_gradient_map(
            ACTIVATIONS[a.activation], seed, a.depth, a.width, features, device, a.trainable
        )
        pair = closest_pair(gradients(inputs))
        vanished.append(pair.vanished)
        angles.append(pair.angle_deg)
        pairs.append(distinct.index[[pair.first, pair.second]])
    with write_hdf5(a.output, a.made_by) as file:
        file["min_angle_deg"] = angles
        file["closest_pair"] = pairs
        file["zero_gradients"] = vanished
        file.attrs.update(
            activation=a.activation, depth=a.depth, width=a.width, seeds=a.seeds,
            trainable=a.trainable, samples=samples,
            duplicate_rows=distinct.duplicate_rows, zero_rows=distinct.zero_rows,
        )  # fmt: skip


if __name__ == "__main__":
    options = command.parser(__doc__)
    command.add_network(options, ACTIVATIONS)
    command.add_trainable(options, TRAINABLE)
    command.add_computing(options)
    command.run(main, options)
