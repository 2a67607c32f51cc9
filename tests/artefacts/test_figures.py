"""Figures: what they show of the numbers, that they can be redrawn from them, and their bytes."""

import importlib
import io
import itertools
import json

import numpy as np
import pandas as pd
import pypdf
import pytest
from scipy import special, stats

import legible
from ntkcond.artefacts import (
    conditions,
    fig1,
    fig2,
    fig3,
    fig4,
    fig_architectures,
    fig_whole,
    interval,
    style,
    sweep_panels,
)
from ntkcond.artefacts.registry import SPECS
from ntkcond.datasets.registry import title
from ntkcond.run.errors import UserError
from training_table import TRAINING

DEPTHS = (0, 1, 2)


VERDICTS = {
    "digits": ["resolved"] * 4, "synthetic": ["singular"] * 4, "mine": ["unresolved"] * 4,
    "mnist": ["resolved", "resolved", "singular", "unresolved"],
}  # fmt: skip


def conditioning() -> pd.DataFrame:
    """Two seeds and blocks of a set that is resolved, one singular, one unresolved, one mixed."""
    rows = []
    for dataset, activation, depth in itertools.product(VERDICTS, ("relu", "linear"), DEPTHS):
        for place, verdict in enumerate(VERDICTS[dataset]):
            kappa = 1000.0 * (place + 1) / (depth + 1)
            kappa = {"singular": np.inf, "unresolved": 1e13}.get(verdict, kappa)
            rows.append({
                "dataset": dataset, "activation": activation, "depth": depth, "width": 512, "n": 48,
                "samples": 100, "seed": place // 2, "block": place % 2, "kappa": kappa,
                "kappa_lower": kappa, "verdict": verdict, "grade": "proved",
                "nonzero_kappa": 7.0 if activation == "linear" else np.nan,
            })  # fmt: skip
    return pd.DataFrame(rows)


def angles() -> pd.DataFrame:
    rows = conditioning().drop_duplicates(["dataset", "activation", "depth", "seed"])
    rows = rows[["dataset", "activation", "depth", "seed"]].copy()
    rows["min_angle_deg"] = 5.0 + rows.depth + rows.seed
    return rows.assign(duplicate_rows=0, zero_rows=0)


TABLE = fig2.table(conditioning(), angles())
THREE_SEEDS = fig2.table(
    conditioning(), pd.concat([angles(), angles()[angles().seed == 1].assign(min_angle_deg=4)])
).assign(seeds=3)


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
    assert np.isnan([resolved.min_angle_deg_low, resolved.min_angle_deg_high]).all()
    assert resolved.min_angle_deg_std == pytest.approx(np.std([6, 7], ddof=1))


def test_intervals_of_bounded_quantities_stay_within_bounds_and_are_ts_where_these_are_far():
    near = np.array([0.2, 3, 9, 0.5, 1.0])
    assert stats.t.interval(0.95, 4, near.mean(), stats.sem(near))[0] < 0  # an angle cannot be
    for values in (near, 180 - near, np.array([0.01, 179, 90])):
        mean, low, high = interval.within(values, 0, 180)
        assert 0 < low < mean == values.mean() < high < 180
    centred = np.array([89.0, 90.5, 91.0, 89.8])
    mean, low, high = interval.within(centred, 0, 180)
    ends = stats.t.interval(0.95, 3, centred.mean(), stats.sem(centred))
    assert [low, high] == pytest.approx(ends, abs=1e-3)
    # By hand: p = 0.25, standard error 0.05 on the scale of log odds 0.05 / (p (1 - p)).
    mean, low, high = interval.within(np.array([0.15, 0.25, 0.35]), 0, 1)
    change = stats.t.ppf(0.975, 2) * 0.1 / np.sqrt(3) / (0.25 * 0.75)
    assert low == pytest.approx(special.expit(special.logit(0.25) - change))
    assert high == pytest.approx(special.expit(special.logit(0.25) + change))
    for few in ([10.0, 12.0], [0.0, 0.0, 0.0], [1.0, np.nan, 2.0]):
        ends = interval.within(np.array(few), 0, 180)[1:]
        assert np.isnan(ends).all() or ends == (0, 0)
    assert np.isnan(interval.t_interval(np.array([1.0, 2.0]))[1:]).all()


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
    bounds = [line for line in kappa_axes.lines if line.get_marker() == "^"]
    assert sum(len(line.get_xdata()) for line in bounds) == 12  # two sets and activations, 3 depths
    assert {height for line in bounds for height in line.get_ydata()} == {1e13}
    for line in kappa_axes.lines:
        drawn = np.asarray(line.get_ydata(), dtype=float)
        assert not np.isinf(drawn).any()
        assert (drawn[np.isfinite(drawn)] <= 1e13).all()


def test_fig_whole_draws_a_curve_over_n_for_each_source():
    sizes = {"mnist_512": 512, "mnist": 60_000, "mine": 100}
    known, by_seed = (rows.query("dataset == 'digits'") for rows in (conditioning(), angles()))
    table = pd.concat([
        known.assign(
            dataset=name, n=n, kappa=known.kappa * n, kappa_lower=0.9 * n, kappa_upper=2000.0 * n,
            lambda_min=1 / n, lambda_min_error=1e-9,
        )
        for name, n in sizes.items()
    ], ignore_index=True)  # fmt: skip
    of_linear = table.activation == "linear"
    table.loc[of_linear, ["kappa", "kappa_lower", "kappa_upper"]] = np.inf
    table.loc[of_linear, "verdict"] = "singular"
    lost = (table.dataset == "mnist") & (table.depth == 2) & ~of_linear
    table.loc[lost, "verdict"] = "unresolved"
    by_name = pd.concat([by_seed.assign(dataset=name) for name in sizes])
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
    assert len(infinite) == len(DEPTHS)
    assert all(list(line.get_xdata()) == [512, 60_000] for line in infinite)
    labels = [label.get_text() for label in kappas.get_xticklabels()]
    assert labels == ["100", "512", "60,000"]
    shown = [list(line.get_ydata()) for line in kappas.lines]
    assert not np.isinf(np.concatenate(shown)).any()
    drawn = numbers.query("source == 'mnist' and activation == 'relu' and depth == 1")
    assert list(drawn.n) == [512, 60_000]
    assert list(drawn.kappa_mean) in shown
    (bound,) = [line for line in kappas.lines if line.get_marker() == "^" and len(line.get_xdata())]
    assert list(bound.get_xdata()) == [60_000]


@pytest.mark.parametrize("dataset", TABLE.dataset.unique())
def test_fig2_of_one_verdict_alone_is_drawn(dataset):
    """Where every κ is infinite, the log axis has nothing to go by."""
    one_point = TABLE[(TABLE.dataset == dataset) & (TABLE.depth == 1)].iloc[:1]
    fig2.draw(one_point).rendered(".png", None)


PAPERS_SETS = {
    "synthetic": 2000, "mnist": 60_000, "fashion_mnist": 60_000, "svhn": 73_257,
    "librispeech": 50_000,
}  # fmt: skip


def of_papers_sets() -> pd.DataFrame:
    of_one = TABLE[TABLE.dataset == "digits"]
    return pd.concat([
        of_one.assign(dataset=name, samples=samples, n=512, blocks=samples // 512)
        for name, samples in PAPERS_SETS.items()
    ], ignore_index=True)  # fmt: skip


def of_activations(*names: str) -> pd.DataFrame:
    """Each with its own κ and angles."""
    relu = TABLE[TABLE.activation == "relu"]
    angle = relu.min_angle_deg_mean
    curves = [
        relu.assign(
            activation=name, kappa_mean=relu.kappa_mean * (1 + i), min_angle_deg_mean=angle + i
        )
        for i, name in enumerate(names)
    ]
    return pd.concat(curves, ignore_index=True).sort_values("dataset", kind="stable")


def test_curves_of_figure_2_differ_whatever_its_data_sets_and_activations():
    many = pd.concat(
        [TABLE[TABLE.dataset == "digits"].assign(dataset=f"set_{i}") for i in range(12)]
    )
    for numbers in (TABLE, many, of_activations("relu", "linear", "gelu", "tanh", "sigmoid")):
        figure = fig2.draw(numbers)
        for axes in figure.axes[::3]:  # of min φ
            curves = [line for line in axes.lines if line.get_marker() not in ("None", "_")]
            looks = {
                (line.get_color(), line.get_marker(), line.get_markerfacecolor()) for line in curves
            }
            assert len(looks) == len(curves) > 1
        names = [text.get_text() for text in figure.legends[0].get_texts()]
        shown = map(title, numbers.dataset.unique())
        if numbers.activation.nunique() > 2:
            assert {"ReLU", "linear", "GELU", "tanh", "sigmoid"} <= set(names)
            titles = [axes.get_title(loc="left") for axes in figure.axes]
            assert all(f"{name}: separation" in titles for name in shown)
        else:
            assert all(f"{name}, 100 samples" in names for name in shown)


def test_figure_2_says_why_kappa_is_infinite_where_samples_repeat():
    repeated = fig2.table(conditioning(), angles().assign(duplicate_rows=22, zero_rows=1))
    figure = fig2.draw(repeated[repeated.dataset == "synthetic"])
    words = " ".join(figure.legends[0].get_title().get_text().split())
    assert "of 100 samples 22 repeat another, 1 are zero" in words
    assert "true" not in words  # advice on settings is the pages'


def test_figures_name_data_sets_and_initialisations_as_a_reader_would():
    names = ("mnist_4000", "digits_unit", "digits", "my_set")
    titles = ["MNIST, 4,000 samples", "digits, norm 1", "digits", "my_set"]
    assert [conditions.title(name) for name in names] == titles
    rows = pd.DataFrame({"dataset": ["mnist", "digits"], "n": 48, "seeds": [2, 1], "width": 512.0})
    words = conditions.in_words(rows.assign(activation="relu", blocks=1))
    several = "2 initialisations of MNIST, 1 initialisation of digits."
    assert words == f"$n$ = 48; ReLU; width $m$ = 512; {several}"


def test_two_kinds_of_shade_have_one_entry_that_tells_them_apart():
    figure = fig2.draw(THREE_SEEDS[THREE_SEEDS.dataset == "digits"])
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    (shade,) = [name for name in names if name.startswith("shade")]
    assert r"of mean min $\phi$; middle 68 % of $\kappa$" in shade


def test_two_initialisations_are_points_not_an_interval():
    figure = fig2.draw(TABLE[TABLE.dataset == "digits"])
    ends = [line for line in figure.axes[0].lines if line.get_marker() == "_"]
    assert sorted({line.get_ydata()[0] for line in ends}) == [5, 6]  # at depth 0
    assert not figure.axes[0].collections
    assert any("each initialisation" in t.get_text() for t in figure.legends[0].get_texts())


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
def test_a_figure_explains_itself_and_its_pdf_is_vector_and_the_same_bytes_from_its_csv(ran, name):
    draw, numbers = importlib.import_module(f"ntkcond.artefacts.{name}").draw, numbers_of(name, ran)
    drawn = draw(numbers)
    again = draw(pd.read_csv(io.StringIO(numbers.to_csv(index=False))))
    pdf = drawn.rendered(".pdf", {"code": "abc"})
    assert pdf == again.rendered(".pdf", {"code": "abc"})
    reader = pypdf.PdfReader(io.BytesIO(pdf))
    assert len(reader.pages) == 1
    assert json.loads(reader.metadata["/Keywords"]) == {"code": "abc"}
    page = reader.pages[0]
    assert not page.images
    for font in page["/Resources"]["/Font"].values():
        font = font.get_object()
        font = font["/DescendantFonts"][0].get_object() if "/DescendantFonts" in font else font
        assert "/FontFile2" in font["/FontDescriptor"].get_object()
    assert WORDS.get(name, "") in page.extract_text()
    assert not legible.faults(drawn, numbers)


@pytest.mark.parametrize(
    "numbers",
    [
        THREE_SEEDS,
        of_papers_sets(),
        of_activations("relu", "linear", "gelu", "tanh", "sigmoid"),
        *(TABLE[TABLE.dataset == name] for name in TABLE.dataset.unique()),
        pd.concat([TABLE.assign(depth=TABLE.depth + 10 * i) for i in range(10)]),
    ],
    ids=["three seeds", "the paper's sets", "activations", *TABLE.dataset.unique(), "30 depths"],
)
def test_figure_2_explains_itself_whatever_it_shows(numbers):
    assert not legible.faults(fig2.draw(numbers), numbers)


def _without_entry(figure: style.Picture, word: str) -> None:
    (legend,) = figure.legends
    for text in legend.get_texts():
        if word in text.get_text():
            text.set_text("")


PLANTED = {
    "colour": lambda figure: _without_entry(figure, "digits"),
    "a shade": lambda figure: [_without_entry(figure, "shade"), _without_entry(figure, "band")],
    "hollow": lambda figure: [_without_entry(figure, "linear"), _without_entry(figure, "bound")],
    "marker '^'": lambda figure: _without_entry(figure, "triangle"),
    "a band": lambda figure: _without_entry(figure, "band"),
    "an arrow": lambda figure: figure.axes[0].annotate("", (1, 5), (1, 9), arrowprops={}),
    "dashes dotted": lambda figure: figure.axes[0].plot([0, 1], [5, 9], ":"),
    "bars": lambda figure: figure.axes[0].vlines([0, 1], 5, 9),
    "leaves the page": lambda figure: figure.text(0.99, 0.5, "a long word", in_layout=False),
    "no whole number": lambda figure: figure.axes[0].set_xticks([0, 0.5, 1]),
    "no number": lambda figure: figure.axes[0].set_xticks([]),
    "only number": lambda figure: figure.axes[0].set_yticks([5]),
    "third of it": lambda figure: figure.axes[0].set_yticks([5, 5.5]),
    "into each other": lambda figure: figure.axes[0].set_yticks([5, 5.05, 9]),
    "n is not said": lambda figure: [
        figure.axes[1].set_ylabel("κ"), figure.legends[0].set_title("$m$ = 512; 2 initialisations"),
    ],
    "width is not said": lambda figure: figure.legends[0].set_title("n = 1; 2 initialisations"),
    "seeds is not said": lambda figure: [
        figure.legends[0].set_title("$m$ = 512"), _without_entry(figure, "initialisation"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("fault", PLANTED)
def test_what_a_picture_does_not_explain_is_noticed(fault):
    figure = fig2.draw(THREE_SEEDS)
    with style.look():
        PLANTED[fault](figure)
    assert any(fault in words for words in legible.faults(figure, THREE_SEEDS))


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


def test_networks_that_take_none_of_the_data_sets_are_named():
    with pytest.raises(UserError, match=r"no network of architectures.names takes these data sets"):
        fig_architectures.table([])
