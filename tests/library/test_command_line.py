"""`ntkcond MODEL SAMPLES`: its numbers are the library's and autograd's; each mistake is one line;
its page needs no other file."""

import base64
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from torch import nn

import ntkcond
from chromium import chromium, serious, show
from ntkcond.library import command_line, user_files
from ntkcond.library.eigen import Interval

MODEL = """
from torch import nn

def network():
    return nn.Sequential(nn.Linear(4, 20), nn.Tanh(), nn.Linear(20, 1))
"""
LABELS = np.array([0, 1, 2, 0, 0, 1, 1, 0, 2, 0, 0, 1])
N = len(LABELS)


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """A network and samples in files of every kind; the working folder."""
    monkeypatch.chdir(tmp_path)
    Path("net.py").write_text(MODEL)
    x = np.random.default_rng(0).standard_normal((N, 4))
    np.save("x.npy", x)
    np.savez("x.npz", x)
    torch.save(torch.from_numpy(x), "x.pt")
    np.savetxt("x.csv", x, fmt="%.17g", delimiter=",", header="a,b,c,d", comments="")
    np.save("labels.npy", LABELS)
    torch.save(torch.from_numpy(LABELS), "labels.pt")
    np.savetxt("labels.csv", LABELS, fmt="%d", header="species", comments="")
    return tmp_path


def network(seed: int) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(4, 20), nn.Tanh(), nn.Linear(20, 1))


def by_autograd(module: nn.Module, x: np.ndarray) -> np.ndarray:
    rows = []
    for sample in torch.from_numpy(x):
        grads = torch.autograd.grad(module.double()(sample).sum(), list(module.parameters()))
        rows.append(torch.cat([g.flatten() for g in grads]).numpy())
    return np.stack(rows) @ np.stack(rows).T


def refused(capsys, *arguments: str) -> str:
    """What stderr says: one line, with exit status 2."""
    assert command_line.main(arguments) == 2
    error = capsys.readouterr().err
    assert re.fullmatch(r"ntkcond: [^\n]+\n", error), error
    return error


def test_its_numbers_are_the_librarys_and_autograds(folder, monkeypatch):
    seen = []
    monkeypatch.setattr(command_line, "_in_words", lambda one: seen.append(one) or "")
    assert command_line.main(["net.py", "x.npy", "--labels", "labels.npy", "--seeds", "2"]) == 0
    x, classes = np.load("x.npy"), np.eye(3)[LABELS]
    assert [one.seed for one in seen] == [0, 1]
    for one in seen:
        assert one.spectrum.kappa == ntkcond.condition_number(network(one.seed), x).kappa
        kernel = by_autograd(network(one.seed), x)
        values = np.linalg.eigvalsh(kernel)
        assert np.allclose(one.values, values, rtol=1e-9)
        assert np.isclose(one.spectrum.kappa, values[-1] / values[0], rtol=1e-9)
        assert np.isclose(one.effective_rank.value, values.sum() / values[-1])
        norms = np.sqrt(kernel.diagonal())
        cosines = np.triu(kernel / np.outer(norms, norms), 1) - 2 * np.tri(N)
        assert np.isclose(one.pair.angle_deg, np.degrees(np.arccos(cosines.max())))
        assert (one.pair.first, one.pair.second) == divmod(int(cosines.argmax()), N)
        centre = np.eye(N) - 1 / N
        centred, targets = centre @ kernel @ centre, centre @ classes @ classes.T @ centre
        cosine = (centred * targets).sum() / np.linalg.norm(centred) / np.linalg.norm(targets)
        assert np.isclose(one.alignment.value, cosine)


def test_the_command_prints_what_the_library_says(folder):
    command = [sys.executable, "-m", "ntkcond", "net.py", "x.npy", "--seeds", "2"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    for seed in (0, 1):
        spectrum = ntkcond.condition_number(network(seed), np.load("x.npy"))
        assert f"seed {seed}: {spectrum}\n" in done.stdout
    assert "2 of 2 resolved: κ from " in done.stdout


@pytest.mark.parametrize("kind", ["npz", "pt", "csv"])
def test_samples_in_files_of_all_kinds_are_the_same(folder, kind):
    assert np.array_equal(user_files.samples(Path(f"x.{kind}")), np.load("x.npy"))


def test_dicts_go_in_as_keywords(folder, capsys):
    Path("two.py").write_text(
        "from torch import nn\nclass Two(nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n        self.layer = nn.Linear(4, 1)\n"
        "    def forward(self, *, a, b):\n        return self.layer(a * b)\nnetwork = Two\n"
    )
    x = np.load("x.npy")
    np.savez("two.npz", a=x[:4], b=x[4:8])
    torch.save({"a": torch.from_numpy(x[:4]), "b": torch.from_numpy(x[4:8])}, "two.pt")
    for kind in ("npz", "pt"):
        assert command_line.main(["two.py", f"two.{kind}", "--seeds", "1"]) == 0
        product = x[:4] * x[4:8]
        values = np.linalg.eigvalsh(product @ product.T + 1)  # of a linear network with a bias
        kappa = re.search(r"κ = (\S+) ±", capsys.readouterr().out)
        assert kappa and np.isclose(float(kappa[1]), values[-1] / values[0], rtol=1e-8)


@pytest.mark.parametrize("kind", ["npy", "pt", "csv"])
def test_whole_numbers_are_classes_and_others_targets(folder, kind):
    classes, words = user_files.labels(Path(f"labels.{kind}"), N)
    assert words == "3 classes" and np.array_equal(classes, np.eye(3)[LABELS])
    np.savetxt("targets.csv", np.arange(N) / 2)
    targets, words = user_files.labels(Path("targets.csv"), N)
    assert words == "targets" and np.array_equal(targets[:, 0], np.arange(N) / 2)


def test_outputs_parameters_and_types_are_the_librarys(folder, capsys):
    Path("three.py").write_text(MODEL.replace("Linear(20, 1)", "Linear(20, 3)"))
    torch.manual_seed(0)
    three = nn.Sequential(nn.Linear(4, 20), nn.Tanh(), nn.Linear(20, 3))
    for word, output in (("2", 2), ("trace", "trace"), ("all", "all")):
        options = ["--network-output", word, "--parameters", "0", "--dtype", "float32"]
        assert command_line.main(["three.py", "x.npy", "--seeds", "1", *options]) == 0
        kernel = ntkcond.kernel(
            three, np.load("x.npy"), output=output, parameters=["0"], dtype=torch.float32
        )
        assert f"seed 0: {ntkcond.condition_number(kernel)}\n" in capsys.readouterr().out


def test_a_network_with_its_own_seed_is_shown_once(folder, capsys):
    Path("net.py").write_text(
        "import torch\n" + MODEL.replace("return", "torch.manual_seed(7); return")
    )
    assert command_line.main(["net.py", "x.npy"]) == 0
    out, error = capsys.readouterr()
    assert out.count("seed ") == 1 and "same weights with each seed" in error


NETWORKS = {  # the file, and what is said of it
    "def network(:": "bad.py, line 1: SyntaxError",
    "import torch\n1 / 0": "bad.py, line 2: ZeroDivisionError: division by zero",
    "x = 1": "bad.py: has no function network()",
    "network = 3": "bad.py: network must be a function",
    "def network():\n    return [3]": "bad.py: network() returns a list",
    "def f():\n    raise KeyError('k')\ndef network():\n    f()":
        "bad.py, line 2: network() raises KeyError: 'k'",
    "import sys\ndef network():\n    sys.exit(3)": "bad.py, line 3: network() raises SystemExit: 3",
    "from torch import nn\ndef network():\n    return nn.LazyLinear(1)":
        "bad.py: weight has no shape yet",
    "from torch import nn\ndef network():\n    return nn.Linear(5, 1)":
        "the module fails on samples of shape (4, 4)",
    "from torch import nn\nclass N(nn.Linear):\n    def forward(self, x):\n        return x @ x\n"
    "def network():\n    return N(4, 1)": "bad.py, line 4: the module fails on samples",
    "from torch import nn\ndef network():\n    return nn.Linear(4, 3)":
        "has 3 outputs: say which, such as --network-output 0",
    "from torch import nn\nclass N(nn.Linear):\n    def forward(self, x):\n        return [x]\n"
    "def network():\n    return N(4, 1)": "let the forward of its network() return one tensor",
    "from torch import nn\ndef network():\n"
    "    return nn.Sequential(nn.Linear(4, 1), nn.BatchNorm1d(1))": "call module.eval()",
}  # fmt: skip


@pytest.mark.parametrize(("code", "said"), NETWORKS.items())
def test_a_network_that_fails_is_named_with_its_line(folder, capsys, code, said):
    Path("bad.py").write_text(code)
    assert said in refused(capsys, "bad.py", "x.npy")


def bad_files() -> None:
    x = np.load("x.npy")
    np.save("nan.npy", np.where(np.arange(N)[:, None] == 5, np.nan, x))
    np.save("one.npy", x[:1])
    np.save("objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    np.save("short.npy", np.arange(3))
    torch.save(nn.Linear(2, 2), "module.pt")
    Path("words.csv").write_text("1,2\n3,red\n")
    Path("empty.csv").write_text("a,b\n")
    Path("broken.npz").write_bytes(b"PK\x03\x04 no archive")
    Path("x.txt").write_text("1")


ARGUMENTS = [
    (("gone.py", "x.npy"), "gone.py: no such file"), ((".", "x.npy"), ".: is a folder"),
    (("x.npy", "x.npy"), "x.npy: the network is a Python file, timm:NAME or hf:CONFIG"),
    (("net.py", "gone.npy"), "gone.npy: no such file"), (("net.py",), "required: SAMPLES"),
    (("net.py", "x.txt"), "x.txt: this kind of file is not known, but .npy"),
    (("net.py", "nan.npy"), "nan.npy: x has NaN or infinite entries, first in sample 5"),
    (("net.py", "one.npy"), "one.npy: x has the shape (1, 4): it must have two samples"),
    (("net.py", "objects.npy"), "objects.npy: cannot be read as numbers"),
    (("net.py", "broken.npz"), "broken.npz: cannot be read as numbers"),
    (("net.py", "module.pt"), "module.pt: torch.load takes tensors"),
    (("net.py", "words.csv"), "words.csv: cannot be read as numbers"),
    (("net.py", "empty.csv"), "empty.csv: has no numbers"),
    (("net.py", "x.npy", "--labels", "short.npy"),
     "short.npy: has labels of shape (3,), for 12 samples"),
    (("net.py", "x.npy", "--labels", "words.csv"), "words.csv: cannot be read as numbers"),
    (("net.py", "x.npy", "--labels", "labels.npy", "--network-output", "all"),
     "use --network-output trace"),
    (("net.py", "x.npy", "--network-output", "1"), "--network-output 1: it must be 0 to 0"),
    (("net.py", "x.npy", "--network-output", "-1"), "--network-output"),
    (("net.py", "x.npy", "--parameters", "head"), "no parameter 'head'. It has 0.weight"),
    (("net.py", "x.npy", "--seeds", "0"), "--seeds: 0 is no number of initialisations"),
    (("net.py", "x.npy", "--dtype", "float16"), "--dtype: invalid choice"),
    (("net.py", "x.npy", "--output", "page.pdf"), "call it page.html"),
    (("net.py", "x.npy", "--output", "gone/page.html"), "no such folder: gone"),
    (("net.py", "x.npy", "--colour", "blue"), "unrecognized arguments: --colour"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "said"), ARGUMENTS)
def test_each_mistake_is_one_line(folder, capsys, arguments, said):
    bad_files()
    assert said in refused(capsys, *arguments)


def test_packages_that_are_not_installed_are_named(folder, capsys, monkeypatch):
    for name in ("timm", "transformers"):
        monkeypatch.setitem(sys.modules, name, None)
    assert "pip install timm" in refused(capsys, "timm:resnet18", "x.npy")
    assert "pip install transformers" in refused(capsys, "hf:gpt2", "x.npy")
    monkeypatch.setattr(command_line.importlib.util, "find_spec", lambda name: None)
    said = refused(capsys, "net.py", "x.npy", "--output", "page.html")
    assert "pip install matplotlib" in said


def test_the_page_needs_no_package_of_the_workflow_but_matplotlib(folder):
    """Nor does anything that the library imports by itself."""
    code = """
import importlib, pathlib, sys
for name in ("psutil", "h5py", "pandas", "snakemake", "yaml", "sklearn", "torchvision"):
    sys.modules[name] = sys.modules["torch._dynamo"] = None
import ntkcond
for name in ntkcond.__all__:
    getattr(ntkcond, name)
for path in pathlib.Path(ntkcond.__file__).parent.glob("library/*.py"):
    importlib.import_module(f"ntkcond.library.{path.stem}")
from ntkcond.library import command_line
command_line.main(["net.py", "x.npy", "--seeds", "1", "--output", "page.html"])
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (folder / "page.html").stat().st_size > 10_000


def test_a_mistake_has_a_traceback_if_asked(folder):
    with pytest.raises(ntkcond.UserError, match="no such file"):
        command_line.main(["gone.py", "x.npy", "--debug"])


@pytest.mark.parametrize(
    ("number", "said"),
    [
        ((12.345678, 12.345677, 12.345679), "12.35"),
        ((12.345, 12.3449999, 12.3450001), "12.35"),  # at the edge of a last digit
        ((51289.0, 51288.9, 51289.1), "51,290"),
        ((0.5, 0.41234, 0.61236), "0.5000 (0.4123 to 0.6124)"),
        ((0.5, 0.49957, 0.50042), "0.5000 (0.4995 to 0.5005)"),
        ((3e-9, 0.0, 3.9999e-4), "3.000e-09 (0.000 to 0.0004000)"),
    ],
)
def test_no_digit_is_shown_that_is_not_known(number, said):
    assert command_line.in_known_digits(Interval(*number)) == said


# The page.


class Links(HTMLParser):
    """All that a page asks for, and its pictures."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.asked: list[str] = []
        self.tags: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.asked += [value for name, value in attrs if name in ("src", "href", "srcset", "data")]


@pytest.fixture
def page(folder) -> str:
    """Of images, two of which are the same but for 10⁻⁶, with labels."""
    x = np.random.default_rng(1).standard_normal((N, 1, 2, 2))
    x[7] = x[3] + 1e-6
    np.save("images.npy", x)
    Path("net.py").write_text(MODEL.replace("nn.Linear(4, 20)", "nn.Flatten(), nn.Linear(4, 20)"))
    options = ["--labels", "labels.npy", "--seeds", "2", "--output", "page.html"]
    assert command_line.main(["net.py", "images.npy", *options]) == 0
    return Path("page.html").read_text("utf-8")


def test_the_page_needs_no_other_file_and_has_its_pictures(page):
    links = Links(page)
    assert not links.tags & {"script", "link", "iframe"} and "@import" not in page
    assert "url(" not in page and len(links.asked) == 2
    for source in links.asked:
        head, _, content = source.partition(",")
        assert head == "data:image/svg+xml;base64"
        assert ElementTree.fromstring(base64.b64decode(content)).tag.endswith("svg")


def test_the_page_has_what_was_found(page):
    text = re.sub(r"<[^>]*>", "", page)
    assert "2 of 2 unresolved" in text and "samples 3 and 7" in text and "alignment" in text
    assert " 2 are not above it (triangles)" in text  # of each seed one
    assert "κ is only known to be above" in text
    assert "ntkcond net.py images.npy --labels labels.npy --seeds 2" in text
    assert f"torch {torch.__version__}" in text


def test_the_page_fits_a_phone_and_is_accessible(page, folder):
    with chromium(folder) as browser:
        show(browser, 390, "light")
        browser.get((folder / "page.html").as_uri())
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
        assert serious(browser) == []
