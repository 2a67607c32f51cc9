"""What was measured: the values that statements name, and the tables that pages repeat.

A row of docs/measured/*.csv that is written by hand has a name, its `quantity`. Any cell of any CSV
is named by its path or name, its column and its row: `fig2.csv: kappa_mean where dataset=digits and
activation=relu and depth=1`. `derived` has what takes a computation.
"""

import copy
import functools
import math
import re
from collections.abc import Iterable, Iterator

import numpy as np
import pandas as pd
import yaml
from scipy.stats import t, ttest_1samp

from ntkcond.artefacts.claims import counts
from ntkcond.artefacts.theory import residual
from ntkcond.jobs.kernel import file_bytes
from ntkcond.networks.activations import ACTIVATIONS
from ntkcond.networks.mlp import MLP
from ntkcond.ntk.linearised import linearised
from ntkcond.plan.config import typed
from ntkcond.plan.graph import Graph
from prose import ROOT, UNITS, Quantity, Value

FOLDERS = ("tests/reference/default", "docs/measured")
MEASURED = ROOT / "docs/measured"
STATEMENTS = MEASURED / "README.md"
WHOLE = "studies/whole/fig_whole.csv"


@functools.cache
def table(path: str) -> pd.DataFrame:
    """A committed CSV, by its path from the root, or its name in one of FOLDERS."""
    paths = [ROOT / folder / path for folder in (".", *FOLDERS)]
    path = next((path for path in paths if path.is_file()), paths[0])
    return pd.read_csv(path, keep_default_na=False, na_values=[""])


class Values(dict):
    """The value of each name."""

    def __missing__(self, name: str) -> Value:
        if name.startswith("="):
            return constant(name[1:])
        match = re.fullmatch(r"(\S+\.csv): (\w+)(?: where (.*))?", name, re.S)
        if not match:
            raise KeyError(
                f"{{{name}}}: no row of docs/measured/*.csv, nor PATH.csv: COLUMN where …"
            )
        path, column, where = match.groups()
        rows = table(path)
        for condition in where.split(" and ") if where else []:
            key, _, wanted = condition.partition("=")
            rows = rows[rows[key.strip()].map(plain) == wanted.strip()]
        cells = rows[column].unique()
        if len(cells) != 1:
            raise KeyError(f"{{{name}}} has {len(cells)} values in {path}")
        return cells[0]


def plain(cell: object) -> str:
    """A cell as one would type it: 10 also where a gap made its column one of floats."""
    return f"{cell:g}" if isinstance(cell, float) else str(cell)


def constant(words: str) -> Value:
    """Quantities for "41 min" and "41"; other words as they are."""
    number, _, unit = words.partition(" ")
    try:
        return Quantity(float(number), unit) if unit in UNITS else words
    except ValueError:
        return words


@functools.cache
def values() -> Values:
    quantities = Values(derived())
    for path in sorted(MEASURED.glob("*.csv")):
        rows = table(path.name)
        if "quantity" in rows:
            for row in rows.itertuples():
                assert row.quantity not in quantities, f"{path.name}: {row.quantity} has two rows"
                unit = row.unit if isinstance(row.unit, str) else ""
                quantities[row.quantity] = Quantity(float(row.value), unit)
    return quantities


@functools.cache
def statements() -> dict[str, tuple[list[str], list[str]]]:
    """For each page: its statements, and the pieces of its text whose numbers are no results."""
    pages: dict[str, tuple[list[str], list[str]]] = {}
    for section in STATEMENTS.read_text("utf-8").split("\n## ")[1:]:
        page, _, lines = section.partition("\n")
        stated, _, others = lines.partition("\nNo results:\n")
        pages[page] = tuple(
            [" ".join(item.split()) for item in re.split(r"^- ", part, flags=re.M)[1:]]
            for part in (stated, others)
        )
    for page, lines in repeated():
        pages.setdefault(page, ([], []))[0].extend(lines)
    return pages


# Computed from the tables


def derived() -> Iterator[tuple[str, Value]]:
    for prefix, path in (("", "claims.csv"), ("images: ", "tests/reference/images/claims.csv")):
        counted = counts(table(path).fillna({"same_as": "", "support": ""}))
        yield f"{prefix}claims", sum(sum(verdicts.values()) for verdicts in counted.values())
        for kind, verdicts in counted.items():
            yield f"{prefix}{kind}", sum(verdicts.values())
            for verdict, count in verdicts.items():
                yield f"{prefix}{kind}: {verdict}", count

    epochs = table("studies/table_1/table_generalization.csv").set_index("depth")
    fewer = epochs.last_epoch_mean[1] / epochs.last_epoch_mean.drop(1)
    yield "epochs at L = 1 to deeper, least", fewer.min()
    yield "epochs at L = 1 to deeper, most", fewer.max()
    accuracy = epochs.test_accuracy_percent_mean
    yield "Table 1, fall", accuracy[1] - accuracy[12]
    above = accuracy - epochs.paper_test_accuracy_percent
    yield from ((f"Table 1, above the paper, L = {depth}", above[depth]) for depth in (1, 3))
    yield "Table 1, above the paper, least", above.min()
    yield "Table 1, above the paper, most of the others", above.drop([1, 3]).max()
    kept = table("studies/table_1/claims.csv").set_index("id").spread
    yield "Table 1, margin", numbers_in(kept["6-tradeoff"])[0]
    angles = np.log(table("fashion_angles.csv")[["relu_deg", "linear_deg"]])
    gain = (angles.relu_deg - angles.linear_deg).to_numpy()
    yield "fashion angles, p", ttest_1samp(gain, 0, alternative="greater").pvalue

    for width, path in ((512, "tests/reference/images/fig2.csv"), (4096, "width_4096.csv")):
        curves = table(path).query("dataset == 'mnist'").set_index(["activation", "depth"])
        kappa = curves.kappa_mean / curves.infinite_kappa_mean
        for (activation, depth), ratio in kappa.items():
            yield f"MNIST, κ to infinite width, m = {width:,}, {activation}, L = {depth}", ratio
        angle = (curves.min_angle_deg_mean / curves.infinite_min_angle_deg).relu[1:]
        yield f"MNIST, min φ to infinite width, m = {width:,}, least", angle.min()
        yield f"MNIST, min φ to infinite width, m = {width:,}, most", angle.max()

    yield from of_networks()
    yield from of_when()
    yield from of_full_size()
    yield from of_whole()
    yield from of_predictors()

    curves = table("fig1.csv").query("activation == 'relu'").groupby("depth")
    for depth, curve in curves:
        above = np.flatnonzero(curve.phi_deg > curve.theta_in_deg)[-1]
        two = curve.iloc[above : above + 2]
        gap = (two.phi_deg - two.theta_in_deg).to_numpy()
        place = np.interp(0, -gap, two.theta_in_deg)
        yield f"largest θ with φ > θ, L = {depth:.0f}", Quantity(place, "°")

    trends = table("trends.csv").query("seeds == 5").set_index("curve")
    large = trends[trends.index.str.contains("falls by 2.5|falls slowly by 2.5")]
    unequal = large.index.str.contains("from 0.2")
    passed = large.holds + large.not_contradicted
    yield "violations that pass", passed.max()
    yield "violations that pass, equal σ", passed[~unequal].max()
    flat = trends[trends.index.str.contains("is flat") & trends.index.str.contains("by 8 (?:σ )?a")]
    yield "flat steps that are confirmed", flat.holds.max()
    yield "violations rejected, slow rise", large[~unequal].does_not_hold.min()
    steep = ~unequal & ~large.index.str.contains("by 1 σ a|by 0.5 σ a")
    yield "violations rejected, else", math.floor(large[steep].does_not_hold.min())

    yield "standard error of a step", math.sqrt(2 / 5)
    whole = table("whole.csv")
    yield "predicted at", whole.gflops.max()
    for name, column in (("", "time_ratio"), (" memory", "memory_ratio")):
        yield f"predicted{name} to measured, least", whole[column].min()
        yield f"predicted{name} to measured, most", whole[column].max()
    yield "kernels of all MNIST", 117 * 5 * 2 * 11
    yield "bytes of all kernels of MNIST", Quantity(8 * 512**2 * 117 * 5 * 2 * 11, "B")
    yield "file of an NTK of 60,000", Quantity(file_bytes(60_000, 60_000, seeds=1), "B")
    ranks = table("ranks.csv").set_index(["n", "ranks"])
    for name, part in (("kernel", "kernel_s"), ("factor", "factor_s")):
        ratio = ranks[part][20_000, 2] / ranks[part][20_000, 0]
        yield f"two ranks to one process, {name}", ratio
    needed = (ranks.needed_mb / ranks.peak_mb).dropna()
    yield "memory of ranks, predicted, least", needed.min()
    yield "memory of ranks, predicted, most", needed.max()
    yield "factor of 46,340", Quantity(ranks.factor_s[46_340, 1], "s")
    yield "memory of 46,340", Quantity(ranks.peak_mb[46_340, 1] * 1e6, "B")
    yield "factor on a core", Quantity(ranks.gflops[20_000, 2] / 2, "Gflop/s")
    seconds = table("scaling.csv").set_index("quantity").value
    yield "all pairs of 60,000", Quantity(9 * seconds["all pairs of 20,000, L = 3"], "s")
    yield "(60,000 / 20,000)²", 9


def of_networks() -> Iterator[tuple[str, Value]]:
    """What depth does in residual networks at infinite width; what ReLU does in transformers."""
    for finding in residual.means_add_up():
        sum_of, linear = finding.setting.split(", ")[:2]
        words = "linear last" if linear.startswith("linear") else "ReLU last"
        yield f"{sum_of}, {words}, growth of κ", float(numbers_in(finding.measured)[0])
    kinds = table("fig_architectures.csv").query("architecture == 'transformer'")
    kappa = kinds.pivot(index="depth", columns="activation", values="kappa_median")
    yield "transformer, ReLU to linear, least", (kappa.relu / kappa.linear).min()
    yield "transformer, ReLU to linear, most", (kappa.relu / kappa.linear).max()


def of_when() -> Iterator[tuple[str, Value]]:
    """The constants of the linearised NTK; of the study `when`, how often the rule is right, the
    change of κ with the tenth layer and beyond, λ_min at m = n."""
    for depth in (1, 10):
        about = linearised(0.0, MLP(ACTIVATIONS["relu"], depth, math.inf))
        yield f"linearised, L = {depth}, mean", about.mean
        yield f"linearised, L = {depth}, slope", about.slope
        yield f"linearised, L = {depth}, lift", about.lift
    numbers = table("studies/when/fig_when_data.csv")
    rule = numbers.input_kappa > numbers.lowers_above
    away = np.exp(np.abs(np.log(numbers.predicted_kappa / numbers.kappa)))
    for dataset, some in numbers.groupby("dataset"):
        name = f"when, {dataset.removesuffix('_4000')}"
        yield f"{name}, all", len(some)
        for at, column in (("right", "kappa"), ("at width", "kappa_at_width")):
            yield f"{name}, {at}", ((some[column] < some.input_kappa) == rule[some.index]).sum()
        yield f"{name}, median", away[some.index].median()
        yield f"{name}, most", away[some.index].max()
        yield f"{name}, zero mean", (some.zero_mean_kappa / some.input_kappa).max()
    yield "when, median", 100 * (away.groupby(numbers.dataset).median().max() - 1)
    steps = table("studies/when/fig_depth_steps.csv").set_index(["dataset", "depth"])
    tenth, last = steps.loc[("all", 10)], steps.loc[("librispeech", 30)]
    yield "tenth layer, change", 100 * (1 - tenth.change_mean)
    yield "tenth layer, least", 100 * (1 - tenth.change_high)
    yield "tenth layer, most", 100 * (1 - tenth.change_low)
    yield "tenth layer, power", 100 * tenth.power
    yield "speech, L = 20 to 30", 100 * (last.change_mean - 1)
    yield "speech, L = 20 to 30, p", last.p_rise
    yield "speech, lowest", steps.loc["librispeech"].kappa_mean.idxmin()
    deep = table("studies/when/fig_depth_steps.csv").query("dataset != 'all' and depth >= 10")
    halves = np.log(deep.kappa_high / deep.kappa_low) / 2 / t.ppf(0.975, deep.seeds - 1)
    spread = halves * np.sqrt(deep.seeds) / np.sqrt(deep.depth / deep.width)
    yield "deep, spread, least", spread.min()
    yield "deep, spread, most", spread.max()
    ratios = table("studies/when/fig_lambda_min.csv")
    square = ratios[ratios.width == ratios.n].groupby(["dataset", "depth"]).ratio_mean
    few = square.agg(["min", "max"])
    shallow = few.loc[[("mnist", 1), ("mnist", 3)]]
    yield "λ_min at m = n, mnist, least", shallow["min"].min()
    yield "λ_min at m = n, mnist, most", shallow["max"].max()
    yield "λ_min at m = n, gaussian, L = 10, least", few.loc[("gaussian", 10), "min"]
    yield "λ_min at m = n, gaussian, L = 10, most", few.loc[("gaussian", 10), "max"]
    yield "λ_min at m = n, least", few["min"].min()
    yield "λ_min at m = n, most", few["max"].max()
    narrow = ratios[(ratios.width == 512) & (ratios.dataset == "gaussian") & (ratios.depth == 10)]
    yield "λ_min at m = 512, gaussian, L = 10, least", narrow.ratio_mean.min()
    yield "λ_min at m = 512, gaussian, L = 10, most", narrow.ratio_mean.max()


def of_full_size() -> Iterator[tuple[str, Value]]:
    """What the claims on all samples measure at m = 512, and ratios of figure 2."""
    claims = table("studies/full_size/claims.csv")
    for row in claims[claims.id.str.match(r"5[-.]") & ~claims.setting.isna()].itertuples():
        name, numbers = row.setting.partition(",")[0], numbers_in(row.measured)
        # Theorem 5.1 is of infinite width
        if not numbers or not (row.id == "5.1-data" or "m = 512" in row.setting):
            continue
        if row.id == "5-falls" and "rise" in str(row.spread):
            rise, p = numbers_in(row.spread)
            yield f"{name}, largest rise of κ", Quantity(rise, "%")
            yield f"{name}, largest rise of κ, p", p
        if row.id == "5-separation-grows" and "fall" in str(row.spread):
            yield f"{name}, largest fall of min φ, p", numbers_in(row.spread)[1]
        yield f"{name}, {row.id}, least", numbers[0]
        yield f"{name}, {row.id}, most", numbers[-1]

    costs = table("studies/full_size/costs.csv").query("artefact == 'fig2'")
    yield "CPU time of figure 2", Quantity(costs.cpu_s.sum(), "s")
    yield "memory of figure 2", Quantity(1e6 * costs.peak_memory_mb.max(), "B")
    angles = claims[claims.id == "5-linear-angles"].measured.map(numbers_in)
    farthest = max(abs(value - 1) for pair in angles for value in pair)
    yield "all sets, angle of linear networks", Quantity(100 * farthest, "%")
    curves = table("studies/full_size/fig2.csv").query("activation == 'relu' and depth > 0")
    kappa = curves.kappa_mean / curves.infinite_kappa_mean
    angle = curves.min_angle_deg_mean / curves.infinite_min_angle_deg
    for name, ratio in (("κ", kappa), ("min φ", angle)):
        yield f"all sets, {name} to infinite width, least", ratio.min()
        yield f"all sets, {name} to infinite width, most", ratio.max()
    for (dataset, depth), rows in curves.groupby(["dataset", "depth"]):
        yield f"{dataset}, min φ to infinite width, L = {depth:.0f}", angle[rows.index[0]]
    kappa = curves.set_index(["dataset", "depth"]).kappa_mean.unstack()
    fall = kappa[1] / kappa[10]
    for dataset, ratio in fall.items():
        yield f"{dataset}, κ at L = 1 to L = 10", ratio
    yield "κ at L = 1 to L = 10, least", fall.min()
    yield "κ at L = 1 to L = 10, most", fall.max()


def of_whole() -> Iterator[tuple[str, Value]]:
    """How κ and min φ of whole data sets go with n, and beside those at infinite width."""
    numbers = table(WHOLE).query("activation == 'relu' and depth > 0")
    for (source, depth), rows in numbers.groupby(["source", "depth"]):
        rows = rows.sort_values("n")
        name = f"whole {source}, L = {depth:.0f}"
        ratio = (rows.kappa_mean / rows.infinite_kappa_mean).to_numpy()
        yield f"{name}, κ to infinite width, first", ratio[0]
        yield f"{name}, κ to infinite width, last", ratio[-1]
        for words, column in (("κ", "kappa_mean"), ("κ at infinite width", "infinite_kappa_mean")):
            logs = np.log(rows[column].to_numpy())
            yield (
                f"{name}, growth of {words}",
                (logs[-1] - logs[0]) / np.log(rows.n.iloc[-1] / rows.n.iloc[0]),
            )
    relu = numbers[numbers.source == "mnist"]
    ratios = relu.kappa_mean / relu.infinite_kappa_mean
    yield "whole mnist, κ to infinite width, least of n = 512", ratios[relu.n == 512].min()
    yield "whole mnist, κ to infinite width, most of n = 512", ratios[relu.n == 512].max()


def numbers_in(words: object) -> list[float]:
    """The numbers in a cell of the claims, such as 1.092e−05 to 0.0001468."""
    return [
        float(word) for word in re.findall(r"-?\d[\d.]*(?:e-?\d+)?", str(words).replace("−", "-"))
    ]


# Tables that a page repeats row by row, with {=VALUE} in each cell

DEPTHS = [0, 1, 2, 4, 6, 8, 9, 10]  # of the table of figure 2
SIZES = (512, 4096, 32_768)  # of the table of whole data sets; and all


def repeated() -> Iterator[tuple[str, list[str]]]:
    yield "docs/claims.md", list(rows_of_trends())
    yield (
        "docs/results.md",
        [*rows_of_full_size(), *rows_of_whole(), *rows_of_architectures(), *rows_of_spectra()],
    )
    yield "studies/README.md", list(rows_of_costs())
    yield "docs/training.md", list(rows_of_table_1())
    yield "docs/speed.md", [*rows_of_predictors(), *rows_of_edges(), *rows_of_tests()]
    yield "docs/performance.md", [*rows_of_kernels(), *rows_of_modules()]
    yield "docs/gpu.md", list(rows_of_gpu())
    yield "docs/cluster.md", list(rows_of_requests())
    yield "docs/scaling.md", [*rows_of_whole_jobs(), *rows_of_ranks()]


def cells(row: Iterable[object]) -> str:
    return f"| {' | '.join(f'{{={cell}}}' for cell in row)} |"


def rows_of_full_size() -> Iterator[str]:
    """Figure 2 of all samples: κ and min φ of each data set, with ReLU and linear."""
    # without the missing
    numbers = table("studies/full_size/fig2.csv").dropna(subset="kappa_verdict")
    curves = numbers.set_index(["dataset", "activation", "depth"]).sort_index()
    for dataset in numbers.dataset.unique():
        for activation in ("relu", "linear"):
            curve = curves.loc[(dataset, activation)]
            for column in ("kappa_mean", "min_angle_deg_mean"):
                values = curve.loc[DEPTHS, column]
                yield " | ".join("∞" if math.isinf(v) else f"{{={v}}}" for v in values)


def rows_of_architectures() -> Iterator[str]:
    """κ of each kind of network with ReLU and linear, of the digits and of MNIST."""
    for path in ("fig_architectures.csv", "architectures_mnist.csv"):
        kinds = table(path).set_index(["architecture", "activation", "depth"])
        for kind in kinds.index.unique("architecture"):
            rows = [kinds.loc[kind, name, depth] for name in ("relu", "linear") for depth in (1, 8)]
            resolved = [row.kappa_verdict == "resolved" for row in rows]
            yield " | ".join(
                f"{{={row.kappa_median}}}" if known else f"> {{={row.kappa_lower_bound}}}"
                for row, known in zip(rows, resolved, strict=True)
            )


def rows_of_table_1() -> Iterator[str]:
    """Rate, epochs and test accuracy of each depth."""
    for row in table("studies/table_1/table_generalization.csv").itertuples():
        accuracy = f"{{={row.test_accuracy_percent_mean}}} ± {{={row.test_accuracy_percent_std}}}"
        paper = row.paper_test_accuracy_percent
        run = f"{{={row.depth}}} | {{={row.learning_rate}}} | {{={row.last_epoch_mean}}}"
        yield f"{run} | {accuracy} | {{={paper}}}"


PREDICTORS = ("fig_predictors.csv", "studies/small/fig_predictors.csv")
SPEEDS = ("fig_speed.csv", "studies/small/fig_speed.csv")


def rows_of_predictors() -> Iterator[str]:
    """Of each data set, loss function and group of networks: ρ of the activation; ρ of κ and of the
    label complexity with its interval, given the activation, given L and m; ρ of width and depth.
    Bold where it is decided."""
    for path in PREDICTORS:
        shown = table(path).query("shown")
        for _, rows in shown.groupby(["dataset", "loss", "group"], sort=False):
            by_measure = rows.set_index("measure")

            def cell(measure: str, name: str, by_measure: pd.DataFrame = by_measure) -> str:
                row = by_measure.loc[measure]
                if math.isnan(row[name]):
                    return "–"
                words = f"{{={row[name]}}}"
                if row[f"{name}_decided"]:
                    words = f"**{words}**"
                if name == "rho" and measure in ("kappa", "label_complexity"):
                    words += f" ({{={row.rho_low}}} to {{={row.rho_high}}})"
                return words

            cells = [f"to {{={rows.threshold.iloc[0]}}}", cell("activation", "rho")]
            for measure in ("kappa", "label_complexity"):
                cells += [cell(measure, n) for n in ("rho", "given_activation", "given_size")]
            yield " | ".join([*cells, cell("width", "rho"), cell("depth", "rho")])


def rows_of_edges() -> Iterator[str]:
    """Of each data set and loss function: the networks of each activation that reach the loss of
    fig_speed, and how many have the lowest and the highest rate as their best."""
    for path in SPEEDS:
        shown = table(path).query("shown")
        for _, rows in shown.groupby(["dataset", "loss"], sort=False):
            cells = [f"to {{={rows.threshold.iloc[0]}}}"]
            for activation in ("relu", "linear"):
                members = rows[rows.activation == activation]
                counts = (
                    members.epochs.notna().sum(),
                    *((members.at_edge == edge).sum() for edge in ("lowest", "highest")),
                )
                cells += [f"{{={count}}}" for count in counts]
            yield " | ".join(cells)


def rows_of_tests() -> Iterator[str]:
    """As `benchmarks/rank_correlations.py` prints them, with neither coverage nor families."""
    tests = table("rank_correlations.csv").dropna(subset=["permutations", "bootstrap"])
    for row in tests.itertuples():
        yield (
            f"| {row.case} | {row.correlation} | {{={row.networks}}} | {{={row.slope}}} |"
            f" {{={row.permutations}}} | {{={row.bootstrap}}} |"
        )


def of_predictors() -> Iterator[tuple[str, Value]]:
    """In how many cases (data sets and losses) a correlation is decided; rates at an edge."""
    tables = [table(path).query("shown") for path in PREDICTORS]
    names = [name.removesuffix("_decided") for name in tables[0] if name.endswith("_decided")]
    for (group, measure), rows in pd.concat(tables).groupby(["group", "measure"]):
        for name in names:
            words = f"{group}, {measure}, {name}"
            yield f"{words}, decided", rows[f"{name}_decided"].sum()
            yield f"{words}, cases", rows[name].notna().sum()
    for words, shown in zip(("digits", "real data"), tables, strict=True):
        for name in names:
            yield f"{words}, tests of {name}", shown[f"{name}_p"].notna().sum()
    relu = pd.concat(tables).query("group == 'relu'").set_index(["dataset", "loss", "measure"])
    rho = relu.rho.unstack()
    yield "cases in which label complexity is above κ", (rho.label_complexity > rho.kappa).sum()
    partial = relu.given_size_p.unstack()[["kappa", "label_complexity"]].to_numpy().ravel()
    yield (
        "partial ρ of κ and label complexity, decided",
        (relu.given_size_decided.unstack()[["kappa", "label_complexity"]].to_numpy().sum()),
    )
    ordered = np.sort(partial) * len(partial) / np.arange(1, len(partial) + 1)
    alone = np.flatnonzero(ordered <= 0.05)
    yield "the same in a family of their own", alone[-1] + 1 if len(alone) else 0

    tests = table("rank_correlations.csv").set_index(["case", "slope"])
    covered = tests.bootstrap["intervals that contain the true rho"]
    yield "intervals that contain ρ, least", covered.min()
    yield "intervals that contain ρ, most", covered.max()
    yield "level of the bootstrap of partial ρ", tests.bootstrap["y of L, m and x", 0.0]
    levels = tests.permutations.dropna().xs(0, level="slope").sort_values()
    yield "level of permutations, least", levels.iloc[0]
    yield "level of permutations, but for one", levels.iloc[-2]
    yield "level of permutations, most", levels.iloc[-1]

    rates = table(SPEEDS[0])
    edges = rates[~rates.at_edge.isna()]
    yield "digits, rows of fig_speed", len(rates)
    yield "digits, rows of fig_speed at an edge", len(edges)
    square = rates[rates.loss == "square"]
    yield "digits, rows of the square loss", len(square)
    yield "digits, rows of the square loss at the lowest", (square.at_edge == "lowest").sum()
    yield "digits, rows of the square loss at 1", (square.learning_rate == 1).sum()
    real = table(SPEEDS[1]).query("shown and loss == 'square' and activation == 'linear'")
    yield "real data, linear networks that reach the square loss", real.epochs.notna().sum()
    yield "real data, of them at the lowest rate", (real.at_edge == "lowest").sum()


def rows_of_spectra() -> Iterator[str]:
    """κ, without its largest eigenvalue, and labels in the first ten, of each data set."""
    columns = (("kappa_mean", 1), ("kappa_without_first_mean", 1), ("labels_up_to_mean", 10))
    for _, rows in table("studies/small/fig_spectrum.csv").groupby("dataset", sort=False):
        numbers = rows.set_index(["depth", "position"])
        yield " | ".join(
            f"{{={numbers.loc[(depth, position), name]}}}"
            for name, position in columns
            for depth in (1, 10)
        )


def rows_of_modules() -> Iterator[str]:
    """Time and memory of ours in each case, and those of the others."""
    for _, rows in table("module.csv").groupby(["case", "n"], sort=False):
        by_way = {row.way: row for row in rows.itertuples()}
        ours, others = by_way["ntkcond"], ("unchecked", "torch_func", "nngeometry")
        theirs = (
            f"{{={by_way[way].times_ours}}} ({{={by_way[way].extra_mib}}} MiB)"
            if way in by_way
            else "refused"
            for way in others
        )
        yield f"{{={ours.seconds}}} s ({{={ours.extra_mib}}} MiB) | {' | '.join(theirs)} |"


def rows_of_costs() -> Iterator[str]:
    """CPU time of figure 2, for each data set and rule."""
    costs = table("studies/full_size/costs.csv").query("artefact == 'fig2'")
    seconds = costs.dropna(subset="dataset").set_index(["dataset", "rule"]).cpu_s
    for dataset in seconds.index.unique("dataset"):
        rules = ("dataset", "kernel", "spectrum", "closest_pair", "sweep")
        yield " | ".join(f"{{={seconds[dataset, rule]}}}" for rule in rules)


def rows_of_trends() -> Iterator[str]:
    """As `benchmarks/trends.py` prints them."""
    yield from map(cells, table("trends.csv").iloc[:, :6].to_numpy())


def rows_of_kernels() -> Iterator[str]:
    """Rows for each n, of ours and of the others, as `make bench` prints them."""
    runs = table("kernel.csv").set_index(["n", "dtype", "package"])

    def ours_and_others(column: str, n: int, dtype: str) -> tuple[str, str]:
        packages = ("ntkcond", "asdfghjkl", "nngeometry", "neural_tangents")
        ours, *others = (f"{{={runs.loc[(n, dtype, name), column]}}}" for name in packages)
        return ours, " · ".join(others)

    columns = ("share_of_rate", "product_gflops", "times_ours", "extra_mib")
    share, rate, times, memory = (ours_and_others(column, 2000, "float64") for column in columns)
    share32, rate32, times32, memory32 = (
        ours_and_others(column, 2000, "float32") for column in columns
    )
    yield f"matrix products at {rate[0]} ({rate32[0]}) Gflop/s | {share[0]} ({share32[0]}) of their"
    yield f"useful operations, {memory[0]} ({memory32[0]}) MiB"
    yield f"ours | {times[1]} ({times32[1]}) times as long, {memory[1]} ({memory32[1]}) MiB"
    share, rate, times, memory = (ours_and_others(column, 512, "float64") for column in columns)
    yield f"ours | {share[0]} of the rate ({rate[0]} Gflop/s), {memory[0]} MiB"
    yield f"the others | {times[1]} times as long, {memory[1]} MiB"
    yield f"reach {{rate of products of 512}}, not {rate[0]}: small"
    jacobian = runs.loc[(500, "float64", "jacobian")]
    yield f"{{={jacobian.times_ours}}} times as long, {{={jacobian.extra_mib} MiB}}"
    others = runs.drop("jacobian", level="package").difference.groupby("dtype").max()
    yield f"they agree within {{={others.float64}}}; in float32"
    yield f"neural-tangents agrees within {{={others.float32}}} only"


def rows_of_gpu() -> Iterator[str]:
    """As `benchmarks/gpu.py` writes them: without the columns that a part leaves empty."""
    for _, part in table("gpu.csv").groupby("part", sort=False):
        lines = []
        for row in part.itertuples():
            known = {name: pd.notna(cell) for name, cell in row._asdict().items()}
            lines.append([
                f"{{={row.case}}}",
                f"{{={row.seconds}}}" if known["seconds"] else "",
                f"{{={row.gflops}}}" if known["gflops"] else "",
                f"{{={row.share}}} of {{={row.rate_gflops}}}, {row.type}" if known["share"] else "",
                f"{{={row.difference}}} ≤ {{={row.tolerance}}}" if known["difference"] else "",
                row.verdict if known["verdict"] else "",
                f"{{={row.gpu_gb} GB}}" if known["gpu_gb"] else "",
                f"{{={row.result}}}" if known["result"] else "",
            ])  # fmt: skip
        columns = [column for column in zip(*lines, strict=True) if any(column)]
        yield from (f"| {' | '.join(line)} |" for line in zip(*columns, strict=True))


def rows_of_whole() -> Iterator[str]:
    """κ and min φ of whole data sets against n: a curve a row."""
    numbers = table(WHOLE).query("activation == 'relu' and depth > 0")
    for _, rows in numbers.groupby(["source", "depth"], sort=False):
        sizes = rows.set_index("n").sort_index()
        for column in ("kappa_mean", "infinite_kappa_mean", "min_angle_deg_mean"):
            values = sizes[column]
            known = [f"{{={values[n]}}}" if n in values else "–" for n in SIZES]
            yield " | ".join([*known, f"{{={values.iloc[-1]}}}"])


def rows_of_whole_jobs() -> Iterator[str]:
    """Whole data sets in one NTK: time, memory, κ and λ_min."""
    jobs = table("whole.csv").set_index("job")
    sets = ("mnist/relu/1", "mnist/relu/3", "mnist/relu/10", "fashion_mnist/relu/3",
            "librispeech/relu/3")  # fmt: skip
    for words, rule, column in (
        ("kernel, s", "kernel", "seconds"),
        ("spectrum, s", "spectrum", "seconds"),
        ("of it to read K, s", "spectrum", "reading_s"),
        ("of it λ_max, s", "spectrum", "largest_s"),
        ("of it Cholesky factor, s", "spectrum", "factor_s"),
        ("of it λ_min, s", "spectrum", "smallest_s"),
        ("of it residual, s", "spectrum", "residual_s"),
        ("memory of the kernel, GB", "kernel", "memory_gb"),
        ("memory of the spectrum, GB", "spectrum", "memory_gb"),
    ):
        cells = (f"{{={jobs.loc[f'{rule}/{name}', column]}}}" for name in sets)
        yield f"| {words} | {' | '.join(cells)} |"
    numbers = table(WHOLE).astype({"depth": int})
    named = (numbers.dataset + "/" + numbers.activation + "/").str.cat(numbers.depth.astype(str))
    numbers = numbers.set_index(named)
    for words, column in (
        ("κ", "kappa_mean"), ("λ_min", "lambda_min"), ("its error, at most", "lambda_min_error"),
        ("‖K v − λ v‖", "smallest_residual"),
    ):  # fmt: skip
        cells = (f"{{={numbers.loc[name, column]}}}" for name in sets)
        yield f"| {words} | {' | '.join(cells)} |"


def rows_of_ranks() -> Iterator[str]:
    """MPI ranks beside one process, L = 3: time of each part, memory of a rank, λ_min."""
    for row in table("ranks.csv").query("depth == 3").itertuples():
        ranks = f"{{={row.ranks}}}" if row.ranks else "one process"
        times = f"{{={row.kernel_s}}} | {{={row.factor_s}}} | {{={row.lambda_min_s}}}"
        share = f"{{={row.factor_of_rate}}}"
        memory = f"{{={row.peak_mb} MB}}"
        smallest = f"{{={row.lambda_min}}} | {{={row.lambda_min_error}}}"
        yield f"| {{={row.n}}} | {ranks} | {times} | {share} | {memory} | {smallest} |"


def rows_of_requests() -> Iterator[str]:
    """What jobs on a cluster request, as `ntkcond.jobs` computes it."""
    default = yaml.safe_load((ROOT / "config.yaml").read_text("utf-8"))
    for name, words, options in (
        ("synthetic", "synthetic, 2,000 samples, n = 512", {}),
        ("mnist", "MNIST, 60,000 samples, n = 512", {}),
        ("mnist", "MNIST, 20,000 samples, n = 20,000", {"samples": 20_000, "block": "all"}),
    ):
        settings = copy.deepcopy(default)
        settings["figures"]["fig2"] = [name]
        settings["datasets"][name] |= options
        line = f"| {words} |"
        for rule in ("kernel", "spectrum", "closest_pair"):
            job = {"dataset": name, "network": "relu", "depth": "10"}
            request = Graph(typed(settings), ROOT).request(rule, job)
            threads = request.threads(cores=None)
            megabytes, minutes = request.megabytes(attempt=1), request.minutes(threads, attempt=1)
            line += f" {{={megabytes} MB}}, {{={minutes} min}}"
            line += f", {threads} cores |" if threads > 1 else " |"
        yield line
