"""A network on the command line: a setting for each field of MLP."""

from argparse import Namespace
from collections.abc import Collection, Mapping
from dataclasses import MISSING, fields

from ntkcond.networks.mlp import MLP
from ntkcond.settings import command
from ntkcond.settings.command import StepParser

FIELDS = {field.name: field for field in fields(MLP)}
NTK_ONLY = {name for name, field in FIELDS.items() if field.metadata.get("ntk_only")}


def parser(doc: str, without: Collection[str] = ()) -> StepParser:
    """The command line of a step that takes a data set and a network: --dataset; --activation,
    --depth, --width …, required unless MLP has a default; --seeds; --device and --threads.

    without: names of fields that the step does not use, such as NTK_ONLY in training, or has a
    setting of its own for, such as depths; or device.
    """
    options = command.parser(doc)
    options.add_inputs("dataset")
    for name in (name for name in FIELDS if name not in without):
        default = FIELDS[name].default
        options.add_settings(name, default=None if default is MISSING else default)
    options.add_settings("seeds")
    command.add_computing(options, "device" not in without)
    return options


def settings(arguments: Namespace) -> dict[str, str | int | float | bool]:
    """The values of the network's options that the step has, as files keep them."""
    return {name: getattr(arguments, name) for name in FIELDS if hasattr(arguments, name)}


def network(arguments: Namespace, **fixed: str | float) -> MLP:
    """The network of the options. fixed: values of fields that are no options of this step."""
    values = {**settings(arguments), **fixed}
    for name, value in values.items():
        choices = FIELDS[name].metadata.get("choices")
        if isinstance(choices, Mapping):  # from names to what they name
            values[name] = choices[value]
    return MLP(**values)
