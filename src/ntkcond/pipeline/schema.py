"""What the settings' fields say (`ntkcond.settings.fields`), in other forms:

python -m ntkcond.pipeline.schema                    prints a JSON Schema of overlays, for editors
python -m ntkcond.pipeline.schema config/README.md   writes the tables of settings in a page anew
"""

import argparse
import dataclasses
import json
import re
from collections.abc import Collection, Iterator
from pathlib import Path

import yaml

from ntkcond.datasets.registry import SOURCES
from ntkcond.pipeline.config import CONFIG, DEFAULT
from ntkcond.run.errors import UserError, run
from ntkcond.settings.fields import Config, Entry, names_of

SCHEMA = {"$schema": "https://json-schema.org/draft/2020-12/schema", **CONFIG.schema}
ALSO_GLOBAL = set(names_of(Config)) - {"training"}  # which the table of the experiment explains
TABLE = re.compile(r"(<!-- settings: ([a-z ]+) -->\n\|[^\n]*\n\|[^\n]*\n).*?(<!-- end -->\n)", re.S)


def of_overlays(schema: dict) -> dict:
    """The same in JSON Schema where each setting may be left out or null."""
    overlay = {key: value for key, value in schema.items() if key != "required"}
    if isinstance(entries := overlay.get("additionalProperties"), dict):
        overlay["additionalProperties"] = {"anyOf": [of_overlays(entries), {"type": "null"}]}
    for key in overlay.keys() & {"anyOf", "oneOf"}:
        overlay[key] = list(map(of_overlays, overlay[key]))
    if properties := overlay.get("properties"):
        overlay["properties"] = {
            name: {"anyOf": [of_overlays(setting), {"type": "null"}]}
            for name, setting in properties.items()
        }
    return overlay


def with_tables(page: str) -> str:
    """The page with rows of tables as they should be. A comment before each names sections of the
    config; `config`: settings in no section; `datasets`: those of a data set alone."""
    default = yaml.safe_load(DEFAULT.read_text("utf-8"))
    of = {name: [s for s in SOURCES if name in SOURCES[s].settings] for name in names_of(Entry)}
    rows = [*_rows(Config, default), *_rows(Entry, of, "datasets", but=ALSO_GLOBAL)]

    def table(match: re.Match) -> str:
        return match[1] + "".join(row for name, row in rows if name in match[2].split()) + match[3]

    return TABLE.sub(table, page)


def _rows(
    of: type, values: dict, section: str = "", above: str = "", but: Collection[str] = ()
) -> Iterator[tuple[str, str]]:
    """Section and row of each setting but some; those of sections within it, too."""
    for field in dataclasses.fields(of):  # type: ignore[arg-type]
        if field.name in but:
            continue
        kind, name, value = field.metadata["kind"], f"{above}{field.name}", values.get(field.name)
        if kind.of and section != "datasets":
            yield from _rows(kind.of, value or {}, section or name, f"{name}.")
        elif section or name not in ("datasets", "figures"):
            shown = f"`{json.dumps(value)}`".replace('"', "") if value not in (None, []) else ""
            words = kind.schema.get("enum", ())
            choice = f"{kind.must}: " if words and all(map(kind.must.count, words)) else ""
            row = f"| `{name}` | {shown} | {choice}{field.metadata['meaning']} |\n"
            yield section or "config", row


def main(arguments: argparse.Namespace) -> None:
    if not arguments.pages:
        print(json.dumps(of_overlays(SCHEMA), ensure_ascii=False, indent=1))
    for page in arguments.pages:
        if not page.is_file():
            raise UserError(f"{page}: no such file")
        page.write_text(with_tables(page.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    options = argparse.ArgumentParser(prog="python -m ntkcond.pipeline.schema")
    options.description = "Prints the JSON Schema of the settings, for editors."
    options.add_argument("pages", nargs="*", type=Path, help="whose tables are written anew")
    run(main, options)
