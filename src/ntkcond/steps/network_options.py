"""A network on the command line: an option for each field of MLP, derived from the dataclass."""

from argparse import Namespace
from collections.abc import Collection, Mapping
from dataclasses import MISSING, Field, fields

from ntkcond.networks.mlp import MLP
from ntkcond.run import command
from ntkcond.run.command import StepParser

FIELDS = {field.name: field for field in fields(MLP)}
NTK_ONLY = {name for name, field in FIELDS.items() if field.metadata.get("ntk_only")}


def parser(doc: str, without: Collection[str] = ()) -> StepParser:
    """The command line of a step that takes a data set and a network: --dataset; --activation,
    --depth, --width …, required unless MLP has a default; --seeds; --device and --threads.

    without: names of fields that the step does not use, such as NTK_ONLY in training, or has an
    option of its own for, such as --depths; or device.
    """
    options = command.parser(doc)
    options.add_input("--dataset", required=True, help="results/datasets/*.h5")
    for name, field in FIELDS.items():
        if name in without:
            continue
        required = field.default is MISSING
        options.add_argument(
            f"--{name.replace('_', '-')}",
            type=_parser_of(field),
            choices=list(field.metadata["choices"]) if "choices" in field.metadata else None,
            required=required,
            default=None if required else field.default,
            help=field.metadata["help"],
        )
    options.add_argument(
        "--seeds", type=command.whole_numbers, required=True, help="such as 1,32,111"
    )
    command.add_computing(options, "device" not in without)
    return options


def _parser_of(field: Field):
    """From the text of an option to a value or, where there are choices, the name of one."""
    if "choices" in field.metadata:
        return str
    if "minimum" in field.metadata:
        return command.at_least(field.metadata["minimum"])
    return command.truth if field.type is bool else field.type


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
