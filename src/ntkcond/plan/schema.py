"""What the settings' fields say (`ntkcond.jobs.settings`), in other forms:

python -m ntkcond.plan.schema                    prints the JSON Schema, for editors
python -m ntkcond.plan.schema config/README.md   writes the tables of settings in a page anew
"""

import dataclasses
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import yaml

from ntkcond.datasets.registry import SOURCES
from ntkcond.jobs.settings import Config, Entry
from ntkcond.plan.config import CONFIG, DEFAULT

SCHEMA = {"$schema": "https://json-schema.org/draft/2020-12/schema", **CONFIG.schema}
TABLE = re.compile(r"(<!-- settings: ([a-z ]+) -->\n).*?(<!-- end -->\n)", re.S)


def with_tables(page: str) -> str:
    """The page with its tables, between comments, as they should be. A comment names sections of
    the config; `config`: settings in no section; `datasets`: those of a data set."""
    lines = list(_settings(Config, yaml.safe_load(DEFAULT.read_text("utf-8"))))

    def table(found: re.Match) -> str:
        sections = found[2].split()
        rows = [row[1:] for row in lines if row[0] in sections]
        column = "default"
        if sections == ["datasets"]:
            column, rows = "of", list(_of_a_data_set())
        head = f"| setting | {column} | meaning |\n|---|---|---|\n"
        return found[1] + head + "".join(f"| {' | '.join(row)} |\n" for row in rows) + found[3]

    return TABLE.sub(table, page)


def _meaning(field: dataclasses.Field) -> str:
    words = [f"`{word}`" for word in field.metadata["kind"].schema.get("enum", ())]
    choice = f"{', '.join(words[:-1])} or {words[-1]}: " if words else ""
    return choice + field.metadata["meaning"]


def _settings(of: type, default: dict, prefix: str = "") -> Iterator[tuple[str, ...]]:
    """Section, name, default and meaning of each setting, in sections too."""
    for field in dataclasses.fields(of):  # type: ignore[arg-type]
        kind, name, value = field.metadata["kind"], f"{prefix}{field.name}", default.get(field.name)
        if kind.of:
            yield from _settings(kind.of, value or {}, f"{name}.")
        elif name not in ("datasets", "figures"):
            shown = f"`{json.dumps(value)}`".replace('"', "") if value is not None else "–"
            section = prefix.partition(".")[0] or "config"
            yield section, f"`{name}`", shown, _meaning(field)


def _of_a_data_set() -> Iterator[tuple[str, ...]]:
    """Name, the sources that have it, and meaning of each setting; in one row those that are its
    own instead of global ones."""
    fields = dataclasses.fields(Entry)
    own = [field for field in fields if field.name in vars(Entry)["__annotations__"]]
    for field in own:
        sources = ", ".join(name for name in SOURCES if field.name in SOURCES[name].settings)
        yield f"`{field.name}`", sources or "all", _meaning(field)
    others = ", ".join(f"`{field.name}`" for field in fields if field not in own)
    yield others, "all", "its own, instead of the global ones"


if __name__ == "__main__":
    if len(sys.argv) == 1:
        print(json.dumps(SCHEMA, ensure_ascii=False, indent=1))
    for page in map(Path, sys.argv[1:]):
        page.write_text(with_tables(page.read_text("utf-8")), "utf-8")
