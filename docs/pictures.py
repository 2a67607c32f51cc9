"""Pictures of the default config that pages show, drawn from tests/reference/default. Each PNG has
digests of its numbers and of the code that drew it: `docs/pages.py --write` draws old ones anew."""

import importlib
import json
from pathlib import Path

from PIL import Image

from ntkcond.artefacts import output
from ntkcond.run.digests import sha256_of
from ntkcond.run.record import CODE, modules_of, short_digest

DOCS = Path(__file__).parent
NUMBERS = DOCS.parent / "tests/reference/default"
NAMES = sorted(p.stem for p in NUMBERS.glob("*.csv") if (DOCS / f"{p.stem}.png").exists())


def made_of(name: str) -> dict[str, str]:
    """Digests of the numbers and of the code of a picture."""
    code = CODE.digests(*modules_of(f"draw_{name}", name))
    return {"numbers": sha256_of(NUMBERS / f"{name}.csv")[:16], "code": short_digest(code)}


def is_todays(name: str) -> bool:
    """Whether the picture was drawn from today's numbers by today's code."""
    with Image.open(DOCS / f"{name}.png") as picture:
        return json.loads(picture.info.get("provenance", "null")) == made_of(name)


def draw(name: str) -> None:
    module = importlib.import_module(f"ntkcond.artefacts.{name}")
    drawn = module.draw(output.read(NUMBERS / f"{name}.csv"))
    (DOCS / f"{name}.png").write_bytes(drawn.rendered(".png", made_of(name)))
