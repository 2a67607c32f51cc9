"""Figures: what they show of the numbers, that they can be redrawn from them, and their bytes."""

import importlib
import io
import json

import numpy as np
import pandas as pd
import pypdf
import pytest
from scipy import stats

from ntkcond.artefacts import fig1, fig2, fig3, fig4, fig_whole, style, sweep_panels
from ntkcond.artefacts.registry import SPECS
from ntkcond.steps import drawing
from training_table import TRAINING

DEPTHS = (0, 1, 2)


def conditioning() -> pd.DataFrame:
    """Two seeds and blocks of a set that is resolved, one singular, one unresolved, one mixed."""
    rows = []
    for dataset, verdicts in {
        "digits": ["resolved"] * 4,
        "synthetic": ["singular"] * 4,
        "mine": ["unresolved"] * 4,
        "mnist": ["resolved", "resolved", "singular", "unresolved"],
    }.items():
        for activation in ("relu", "linear"):
            for depth in DEPTHS:
                for (seed, block), verdict, factor in zip(
                    np.ndindex(2, 2), verdicts, (1, 2, 3, 4), strict=True
                ):
                    kappa = 1000.0 * factor / (depth + 1)
                    kappa = {"singular": np.inf, "unresolved": 1e13}.get(verdict, kappa)
                    rows.append(
                        {
                            "dataset": dataset, "activation": activation, "depth": depth,
                            "width": 512, "n": 48, "samples": 100, "seed": seed, "block": block,
                            "kappa": kappa, "kappa_lower": kappa, "verdict": verdict,
                            "grade": "proved",
                            "nonzero_kappa": 7.0 if activation == "linear" else np.nan,
                        }
                    )  # fmt: skip
    return pd.DataFrame(rows)


def angles() -> pd.DataFrame:
    rows = conditioning().drop_duplicates(["dataset", "activation", "depth", "seed"])
    rows = rows[["dataset", "activation", "depth", "seed"]].copy()
    rows["min_angle_deg"] = 5.0 + rows.depth + rows.seed
    return rows.assign(duplicate_rows=0, zero_rows=0)


TABLE = fig2.table(conditioning(), angles())


def row(dataset: str, depth: int = 1, activation: str = "relu") -> pd.Series:
    chosen = TABLE[
        (TABLE.dataset == dataset) & (TABLE.depth == depth) & (TABLE.activation == activation)
    ]
    assert len(chosen) == 1
    return chosen.iloc[0]


def test_fig2_has_mean_and_spread_over_seeds_and_blocks():
    resolved = row("digits")
    kappas = np.array([500, 1000, 1500, 2000])
    assert resolved.kappa_mean == kappas.mean()
    assert resolved.kappa_median == np.median(kappas)
    assert resolved.kappa_std == pytest.approx(kappas.std(ddof=1))
    assert (resolved.seeds, resolved.blocks, resolved.n, resolved.samples) == (2, 2, 48, 100)
    assert (resolved.min_angle_deg_mean, resolved.kappa_verdict) == (6.5, "resolved")
    ends = stats.t.interval(0.95, 1, loc=6.5, scale=0.5)  # the standard error of 6 and 7
    assert (resolved.min_angle_deg_low, resolved.min_angle_deg_high) == pytest.approx(ends)


def test_fig2_never_averages_infinity_or_a_bound_into_kappa():
    assert (row("synthetic").kappa_mean, row("synthetic").kappa_verdict) == (np.inf, "singular")
    assert np.isnan(row("mine").kappa_mean)
    assert (row("mine").kappa_lower_bound, row("mine").kappa_verdict) == (1e13, "unresolved")
    mixed = row("mnist")
    assert (mixed.kappa_mean, mixed.kappa_verdict) == (750, "mixed")
    assert (mixed.kappa_lower_bound, mixed.kappa_median) == (1e13, 1000)  # of 500, 1000, 1e13, ∞
    assert (mixed.resolved, mixed.singular, mixed.unresolved) == (2, 1, 1)


def test_a_median_that_lost_kernels_may_raise_is_drawn_as_a_bound():
    curve = pd.DataFrame({
        "depth": [1, 2, 3, 4], "resolved": [4, 3, 1, 0], "unresolved": [0, 1, 3, 4],
        "kappa_lower_bound": [np.nan, 1e13, 1e12, 1e11], "kappa_median": [10, 20, 2e12, 3e11],
        "kappa_q16": 5.0, "kappa_q84": 50.0,
    })  # fmt: skip
    axes = style.figure(height=2).subplots()
    sweep_panels.draw_kappa(axes, "depth", curve, {"color": "black", "marker": "o"})
    known, bounds = axes.lines
    assert list(known.get_xdata()) == [1, 2]  # its lost kernel is above the median
    assert list(bounds.get_xdata()) == [3, 4]
    assert list(bounds.get_ydata()) == [2e12, 3e11]
    assert (bounds.get_marker(), bounds.get_markerfacecolor()) == ("^", "white")


def test_fig2_draws_infinite_kappas_in_their_band_and_nowhere_else():
    figure = fig2.draw(TABLE)
    _, kappa_axes, band = figure.axes
    assert [label.get_text() for label in band.get_yticklabels()] == [r"$\infty$"]
    curves = [line for line in band.lines if len(line.get_xdata())]
    assert len(curves) == 4  # synthetic and mnist, ReLU and linear
    assert all(list(line.get_xdata()) == list(DEPTHS) for line in curves)
    arrows = [text for text in kappa_axes.texts if text.arrow_patch]
    assert len(arrows) == 12  # mine and mnist, ReLU and linear, three depths
    assert {text.xy[1] for text in arrows} == {1e13}
    for line in kappa_axes.lines:
        drawn = np.asarray(line.get_ydata(), dtype=float)
        assert not np.isinf(drawn).any()
        assert (drawn[np.isfinite(drawn)] <= 1e13).all()


def test_fig_whole_draws_a_curve_over_n_for_each_source():
    sizes, rows = {"mnist_512": 512, "mnist": 60_000, "mine": 100}, []
    for name, n in sizes.items():
        known = conditioning().query("dataset == 'digits'")
        rows.append(
            known.assign(
                dataset=name,
                n=n,
                kappa=known.kappa * n,
                kappa_lower=0.9 * n,
                kappa_upper=2000.0 * n,
                lambda_min=1 / n,
                lambda_min_error=1e-9,
            )
        )
    table = pd.concat(rows, ignore_index=True)
    of_linear = table.activation == "linear"
    table.loc[of_linear, ["kappa", "kappa_lower", "kappa_upper"]] = np.inf
    table.loc[of_linear, "verdict"] = "singular"
    lost = (table.dataset == "mnist") & (table.depth == 2) & ~of_linear
    table.loc[lost, "verdict"] = "unresolved"
    by_name = pd.concat(
        [angles().query("dataset == 'digits'").assign(dataset=name) for name in sizes]
    )
    sources = {"mnist_512": "mnist", "mnist": "mnist", "mine": "mine"}
    numbers = fig_whole.table(fig2.table(table, by_name), table, sources)
    assert list(numbers.source.unique()) == ["mnist", "mine"]
    assert "smallest_is_above" not in numbers
    figure = fig_whole.draw(numbers)
    assert [axes.get_title(loc="left") for axes in figure.axes] == [
        "MNIST: separation", "", "MNIST: conditioning",
        "mine: separation", "", "mine: conditioning",
    ]  # fmt: skip
    _, kappas, band = figure.axes[:3]
    infinite = [line for line in band.lines if len(line.get_xdata())]
    assert len(infinite) == len(numbers.query("activation == 'linear'").depth.unique())
    assert all(list(line.get_xdata()) == [512, 60_000] for line in infinite)
    labels = [label.get_text() for label in kappas.get_xticklabels()]
    assert labels == ["100", "512", "60,000"]
    shown = [list(line.get_ydata()) for line in kappas.lines]
    assert not np.isinf(np.concatenate(shown)).any()
    known = numbers.query("source == 'mnist' and activation == 'relu' and depth == 1")
    assert list(known.n) == [512, 60_000]
    assert list(known.kappa_mean) in shown
    (bound,) = [line for line in kappas.lines if line.get_marker() == "^" and len(line.get_xdata())]
    assert list(bound.get_xdata()) == [60_000]


@pytest.mark.parametrize("dataset", TABLE.dataset.unique())
def test_fig2_of_one_verdict_alone_is_drawn(tmp_path, dataset):
    """Where every κ is infinite, the log axis has nothing to go by."""
    fig2.draw(TABLE[TABLE.dataset == dataset]).save(tmp_path / "fig2.png")
    one_point = TABLE[(TABLE.dataset == dataset) & (TABLE.depth == 1)].iloc[:1]
    fig2.draw(one_point).save(tmp_path / "fig2.png")


def test_fig2_has_room_for_the_words_of_the_papers_five_sets():
    sizes = {
        "synthetic": 2000, "mnist": 60_000, "fashion_mnist": 60_000, "svhn": 73_257,
        "librispeech": 50_000,
    }  # fmt: skip
    of_one = TABLE[TABLE.dataset == "digits"]
    paper = [
        of_one.assign(dataset=name, samples=samples, n=512, blocks=samples // 512)
        for name, samples in sizes.items()
    ]
    drawn = fig2.draw(pd.concat(paper))
    with style.look():
        drawn.canvas.draw()
        (legend,) = drawn.legends
        assert "LibriSpeech: 50,000 samples in 97 blocks of 512" in [
            text.get_text() for text in legend.get_texts()
        ]
        box, page = legend.get_window_extent(), drawn.bbox
    assert (page.x0 <= box.x0) and (box.x1 <= page.x1)


# Made by hand, with verdicts that small data have not; other figures are drawn from small results.
BY_HAND = {
    "fig1": lambda: fig1.table([1, 10]),
    "fig2": lambda: TABLE,
    "fig3": lambda: fig3.table(TRAINING, "depth"),
    "fig4": fig4.table,
}
# That a figure's page says; of a figure not named here, nothing.
WORDS = {
    "fig1": "degrees", "fig2": "degrees", "fig3": "training loss (nats)", "fig4": "degrees",
    "fig_activations": "degrees", "fig_activations_ntk": "degrees",
    "fig_architectures": "degrees", "fig_descent": "residual", "fig_evolution": "step",
    "fig_spectrum": "position of the eigenvalue", "fig_speed": "epochs", "fig_predictors": "epochs",
    "fig_infinite_depth": "degrees", "fig_samples": "samples", "fig_weight_scale": "degrees",
    "fig_width": "degrees", "fig_when": "offset", "fig_when_data": "whitened",
    "fig_depth_steps": "change", "fig_lambda_min": "min",
}  # fmt: skip
FIGURES = [name for name, spec in SPECS.items() if ".pdf" in spec.files]


def numbers_of(name: str, ran) -> pd.DataFrame:
    by_hand = BY_HAND.get(name, lambda: pd.read_csv(ran.folder / f"results/{name}.csv"))
    return by_hand()


def test_the_figures_of_the_paper_are_among_those_drawn():
    assert WORDS.keys() <= set(FIGURES)


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.filterwarnings("error")  # a layout that does not fit is a warning
def test_pdf_is_vector_with_embedded_fonts_and_the_same_bytes_again(tmp_path, ran, name):
    draw, numbers = importlib.import_module(f"ntkcond.artefacts.{name}").draw, numbers_of(name, ran)
    for file in ("a.pdf", "b.pdf"):
        draw(numbers).save(tmp_path / file, {"code": "abc"})
    assert (tmp_path / "a.pdf").read_bytes() == (tmp_path / "b.pdf").read_bytes()
    reader = pypdf.PdfReader(tmp_path / "a.pdf")
    assert len(reader.pages) == 1
    assert json.loads(reader.metadata["/Keywords"]) == {"code": "abc"}
    page = reader.pages[0]
    assert not page.images
    for font in page["/Resources"]["/Font"].values():
        font = font.get_object()
        font = font["/DescendantFonts"][0].get_object() if "/DescendantFonts" in font else font
        assert "/FontFile2" in font["/FontDescriptor"].get_object()
    assert WORDS.get(name, "") in page.extract_text()


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_can_be_redrawn_from_its_csv_alone(tmp_path, ran, name):
    draw, numbers = importlib.import_module(f"ntkcond.artefacts.{name}").draw, numbers_of(name, ran)
    text = numbers.to_csv(index=False)
    for file, table in (("a.png", numbers), ("b.png", pd.read_csv(io.StringIO(text)))):
        draw(table).save(tmp_path / file)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


@pytest.mark.parametrize("name", [name for name in FIGURES if SPECS[name].datasets])
@pytest.mark.filterwarnings("error")  # a layout that does not fit is a warning
def test_a_picture_names_the_data_sets_that_are_missing(tmp_path, ran, name):
    module = importlib.import_module(f"ntkcond.artefacts.{name}")
    drawing.draw(module, numbers_of(name, ran), ["svhn", "mine_"]).save(tmp_path / "a.pdf")
    words = pypdf.PdfReader(tmp_path / "a.pdf").pages[0].extract_text()
    note = "Missing: SVHN, mine_, whose raw files were not available."
    assert note in " ".join(words.split())


def test_colours_differ_in_lightness_along_depth():
    """Readable in black and white: deeper is darker."""
    red, green, blue, _ = style.depth_colours(10).T
    lightness = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    assert (np.diff(lightness) < 0).all()


def test_fig1_shows_each_depth_and_the_linear_diagonal():
    numbers = fig1.table([1, 5])
    linear = numbers[numbers.activation == "linear"]
    assert (linear.phi_deg == linear.theta_in_deg).all()
    at_60 = numbers[(numbers.depth == 5) & (numbers.theta_in_deg == 60)]
    assert at_60.phi_deg.item() == pytest.approx(65.765, abs=6e-4)
