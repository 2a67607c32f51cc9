"""A figure's three files: what is drawn as .csv, the picture as .pdf and .png."""

from argparse import Namespace
from types import ModuleType

import pandas as pd

from ntkcond.figures import style
from ntkcond.storage import write_csv


def write(figure: ModuleType, numbers: pd.DataFrame, arguments: Namespace) -> None:
    """Writes all three beside `arguments.output`, whose suffix does not matter."""
    write_csv(arguments.output.with_suffix(".csv"), numbers)
    drawn = figure.draw(numbers)
    for suffix in (".pdf", ".png"):
        style.save(drawn, arguments.output.with_suffix(suffix), arguments.made_by)
