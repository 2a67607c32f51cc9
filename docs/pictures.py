"""The pictures of the default config in pages, drawn from tests/reference/default:

python docs/pictures.py          which were drawn of other numbers, or by other code
python docs/pictures.py --write  draws these anew

The digests of both stand in each PNG; a test reads them."""

import importlib
import json
import sys
from pathlib import Path

from PIL import Image

from ntkcond.artefacts import output
from ntkcond.run.digests import sha256_of
from ntkcond.run.record import CODE, modules_of, short_digest

ROOT = Path(__file__).parents[1]
NUMBERS = ROOT / "tests/reference/default"
NAMES = sorted(
    path.stem for path in NUMBERS.glob("*.csv") if (ROOT / f"docs/{path.stem}.png").exists()
)


def made_of(name: str) -> dict[str, str]:
    """Digests of the numbers and of the code of a picture."""
    code = CODE.digests(*modules_of(f"draw_{name}", name))
    return {"numbers": sha256_of(NUMBERS / f"{name}.csv")[:16], "code": short_digest(code)}


def is_todays(name: str) -> bool:
    """Whether the picture was drawn from today's numbers by today's code."""
    with Image.open(ROOT / f"docs/{name}.png") as picture:
        return json.loads(picture.info.get("provenance", "null")) == made_of(name)


def main(write: bool) -> int:
    """The exit status: whether any was out of date."""
    old = [name for name in NAMES if not is_todays(name)]
    for name in old:
        print(f"docs/{name}.png")
        if write:
            module = importlib.import_module(f"ntkcond.artefacts.{name}")
            drawn = module.draw(output.read(NUMBERS / f"{name}.csv"))
            (ROOT / f"docs/{name}.png").write_bytes(drawn.rendered(".png", made_of(name)))
    return int(bool(old) and not write)


if __name__ == "__main__":
    sys.exit(main("--write" in sys.argv))
