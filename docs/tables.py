"""Tables that pages show of kept results. A function gives a table, as a DataFrame of cells, for a
page that has `<!-- table NAME -->` and `<!-- end of table -->`: docs/pages.py writes it between."""

import functools
import math
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from ntkcond.artefacts.claims import counts
from ntkcond.artefacts.verdicts.claim import UNTESTED

ROOT = Path(__file__).parents[1]
DEFAULT = "tests/reference/default"
EDGES = {"lowest": " (lowest tried)", "highest": " (highest tried)"}
PREDICTORS = (f"{DEFAULT}/fig_predictors", "studies/small/fig_predictors")
SUPERSCRIPT = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
TITLES = {
    "synthetic": "synthetic", "mnist": "MNIST", "fashion_mnist": "Fashion-MNIST",
    "librispeech": "LibriSpeech", "digits": "digits",
    "plain": "fully connected", "biases": "with biases", "residual": "residual",
    "residual_linear": "residual, a linear layer last", "normalised": "normalised",
    "convolutional": "convolutional", "transformer": "transformer",
    "tutorial": "PyTorch's NTK tutorial, 10 outputs, all of them", "gpt2": "tiny GPT-2, 32 tokens",
    "mlp": "MLP with biases, 784–512–512–1", "cnn": "CNN, 3 convolutions, 28 × 28 pixels",
    "resnet18": "ResNet-18, a quarter of its width",
    "4 blocks": "transformer, 4 blocks",
}  # fmt: skip


@functools.cache
def kept(path: str) -> pd.DataFrame:
    """A CSV in git by its path, without `.csv` or `.csv.gz`."""
    plain = ROOT / f"{path}.csv"
    place = plain if plain.exists() else ROOT / f"{path}.csv.gz"
    return pd.read_csv(place, keep_default_na=False, na_values=[""])


def markdown(cells: pd.DataFrame) -> str:
    lines = [cells.columns, *cells.to_numpy()]
    rows = [f"| {' | '.join(map(str, line))} |" for line in lines]
    return "\n".join([rows[0], "|" + "---|" * len(cells.columns), *rows[1:]])


def table(names: str, rows) -> pd.DataFrame:
    """From rows of cells. names: of the columns, with | between."""
    return pd.DataFrame(list(rows), columns=[name.strip() for name in names.split("|")])


def kappa(value: float) -> str:
    """53,000; 4.3·10⁸; ∞; three digits at most."""
    if math.isinf(value):
        return "∞"
    return power(value, 1) if value >= 1e5 else digits(value)


def power(value: float, decimals: int) -> str:
    """4.3·10⁸."""
    mantissa, exponent = f"{value:.{decimals}e}".split("e")
    return f"{mantissa}·10{str(int(exponent)).translate(SUPERSCRIPT)}"


def digits(value: float, kept: int = 3) -> str:
    """A number with so many significant digits."""
    if math.isnan(value):
        return "–"
    decimals = kept - 1 - math.floor(math.log10(abs(value))) if value else 0
    return f"{round(value, decimals):,.{max(0, decimals)}f}"


def signed(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:+.2f}".replace("-", "−")


# κ and angles


def full_size() -> pd.DataFrame:
    numbers = kept("studies/full_size/fig2").dropna(subset="kappa_verdict")
    curves = numbers.set_index(["dataset", "activation", "depth"]).sort_index()
    return table("|κ, L = 0|L = 1|L = 3|L = 10|min φ, L = 0|L = 1|L = 3|L = 10", (
        [f"{TITLES[dataset]}, {words}",
         *(kappa(curves.kappa_mean[dataset, name, L]) for L in (0, 1, 3, 10)),
         *(f"{digits(curves.min_angle_deg_mean[dataset, name, L], 2)}°" for L in (0, 1, 3, 10))]
        for dataset in numbers.dataset.unique()
        for name, words in (("relu", "ReLU"), ("linear", "linear"))
    ))  # fmt: skip


def whole() -> pd.DataFrame:
    """ReLU networks, by the first 512 samples and by all."""
    return table("|all, n|κ, n = 512|all|m = ∞, n = 512|all|min φ, all", (
        [f"{TITLES[source]}, L = {depth}", f"{last.n:,}",
         kappa(first.kappa_mean), kappa(last.kappa_mean),
         kappa(first.infinite_kappa_mean), kappa(last.infinite_kappa_mean),
         f"{last.min_angle_deg_mean:.1f}°"]
        for source, depth, first, last in _whole_sets()
    ))  # fmt: skip


def _whole_sets() -> Iterator[tuple]:
    """Data set, depth, the row of the first 512 samples and that of all."""
    numbers = kept("studies/whole/fig_whole").query("activation == 'relu' and depth > 0")
    for (source, depth), rows in numbers.groupby(["source", "depth"], sort=False):
        yield source, depth, rows[rows.n == 512].iloc[0], rows.loc[rows.n.idxmax()]


def architectures() -> pd.DataFrame:
    kinds = kept(f"{DEFAULT}/fig_architectures").set_index(["architecture", "activation", "depth"])

    def cell(one: pd.Series) -> str:
        resolved = one.kappa_verdict == "resolved"
        return kappa(one.kappa_median) if resolved else f"> {power(one.kappa_lower_bound, 1)}"

    return table("|ReLU, L = 1|L = 8|linear, L = 1|L = 8", (
        [TITLES[kind], *(cell(kinds.loc[kind, name, depth])
                         for name in ("relu", "linear") for depth in (1, 8))]
        for kind in kinds.index.unique("architecture")
    ))  # fmt: skip


def real_models() -> pd.DataFrame:
    """By package; of those whose κ float64 can tell, how many are resolved."""
    models = kept("docs/measured/models")
    models = models.assign(
        package=models.model.str.split(" ").str[0],
        known=(models.kappa > 0) & (models.kappa * 5 * 2**-53 < 1e-6),
    )
    return table("|networks|weights|right|resolved|largest ∣ΔK∣", (
        [package, len(some), f"{digits(some.weights.min())} to {power(some.weights.max(), 1)}",
         some.answer.str.startswith("right").sum(),
         f"{(some[some.known].verdict == 'resolved').sum()} of {some.known.sum()}",
         power(some.off.max(), 1)]
        for package, some in models.groupby("package", sort=False)
    ))  # fmt: skip


def whitened() -> pd.DataFrame:
    """100 whitened images of MNIST."""
    numbers = kept("studies/when/fig_when_data").query(
        "dataset == 'mnist_4000' and variant == 'whitened' and n == 100 and depth in (1, 10)"
    )
    names = ["input_kappa", "kappa", "rest_kappa", "centred_kappa", "zero_mean_kappa"]
    return table("κ|inputs|ReLU|without λ_max|centred NTK|ReLU less its mean", (
        [f"L = {one.depth}", *map(digits, one[names])] for _, one in numbers.iterrows()
    ))  # fmt: skip


def when_data() -> pd.DataFrame:
    """How often the rule is right, and how far the linearised NTK is off."""
    numbers = kept("studies/when/fig_when_data")
    numbers = numbers.assign(
        rule=numbers.input_kappa > numbers.lowers_above,
        off=np.exp(np.abs(np.log(numbers.predicted_kappa / numbers.kappa))),
        zero=numbers.zero_mean_kappa / numbers.input_kappa,
    )
    return table("|rule right|at width 512|linearised κ off by, median|most"
                 "|κ of ReLU less its mean / κ of inputs, most", (
        [TITLES[dataset.removesuffix("_4000")],
         f"{((some.kappa < some.input_kappa) == some.rule).sum()} of {len(some)}",
         ((some.kappa_at_width < some.input_kappa) == some.rule).sum(),
         digits(some.off.median()), digits(some.off.max()), digits(some.zero.max(), 2)]
        for dataset, some in numbers.groupby("dataset", sort=False)
    ))  # fmt: skip


# Claims and training


def verdicts() -> pd.DataFrame:
    found = counts(kept(f"{DEFAULT}/claims").fillna({"same_as": "", "support": ""}))
    columns = {
        "theorems, closed forms": found["theorem"],
        "statements about data and training": found["experiment"],
        "slips of the text": found["slip"], "conjectures": found["conjecture"],
    }  # fmt: skip
    numbers = pd.DataFrame(columns).reindex(dict.fromkeys(v for of in columns.values() for v in of))
    numbers.loc["all"] = numbers.sum()
    cells = numbers.map(lambda count: "–" if math.isnan(count) else f"{count:.0f}")
    return cells.reset_index(names="verdict")


def not_so() -> pd.DataFrame:
    """Claims of the paper that a test or an example contradicts."""
    return _corrections("does not hold in general")


def corrected() -> pd.DataFrame:
    """Claims that hold with another constant, under another condition or without strictness."""
    return _corrections("holds as corrected")


def _corrections(verdict: str) -> pd.DataFrame:
    claims = kept("studies/full_size/claims").astype(object).fillna("")
    of_paper = claims[(claims["correction"] != "") & ~claims["id"].str.startswith("ours")]
    of_paper = of_paper[of_paper["verdict"] == verdict].drop_duplicates("id")
    lines = (
        (f"{row.source} `{row.id}`", row.claim, row.correction, _first(row.expected),
         f"{row.quantity}: {_first(row.measured)}")
        for row in of_paper.itertuples()
    )  # fmt: skip
    lines = ([cell.replace("|", "∣") for cell in line] for line in lines)
    return table("where | it says | right | so expected | measured", lines)


def _first(values: str, most: int = 3) -> str:
    """The first of several numbers."""
    several = values.split(", ")
    return ", ".join(several[:most]) + (" …" if len(several) > most else "")


def verdicts_of_studies() -> pd.DataFrame:
    """Where those of a study that is up to date differ from those of the default config."""
    states = (ROOT / "studies/README.md").read_text("utf-8")
    overall = kept(f"{DEFAULT}/claims").drop_duplicates("id").set_index("id").overall
    others: dict[str, dict[str, list[str]]] = {claim: {} for claim in overall.index}
    for study in re.findall(r"^\| (\w+) \| claims \| (?:fresh|of older)", states, re.M):
        verdicts = kept(f"studies/{study}/claims").drop_duplicates("id").set_index("id").overall
        for claim, verdict in verdicts.items():
            if verdict not in (UNTESTED, overall[claim]):
                others[claim].setdefault(verdict, []).append(f"`{study}`")
    return table("claim|default config|elsewhere", (
        [f"`{claim}`", overall[claim], "; ".join(f"{', '.join(v)}: {k}" for k, v in found.items())]
        for claim, found in others.items()
        if found
    ))  # fmt: skip


def table_1() -> pd.DataFrame:
    return table("L|rate|epochs|test accuracy (%)|paper (%)", (
        [one.depth, f"{one.learning_rate:g}{EDGES.get(one.at_edge, '')}",
         f"{one.last_epoch_mean:g}",
         f"{one.test_accuracy_percent_mean:.2f} ± {one.test_accuracy_percent_std:.2f}",
         f"{one.paper_test_accuracy_percent:.2f}"]
        for one in kept("studies/table_1/table_generalization").itertuples()
    ))  # fmt: skip


def one_seed() -> pd.DataFrame:
    """Without MNIST, of which `figure_3` has more."""
    return epochs_to_losses(kept("studies/one_seed/table_epochs").query("dataset != 'mnist'"))


def figure_3() -> pd.DataFrame:
    return epochs_to_losses(kept("studies/figure_3/table_epochs"))


def epochs_to_losses(numbers: pd.DataFrame) -> pd.DataFrame:
    """Mean epochs to some losses at the best rate of each depth; above the number of epochs where a
    loss was not reached by all seeds. A rate at the edge of several is marked."""
    numbers, lines = numbers.query("rate_for == 'depth'"), []
    for dataset, rows in numbers.groupby("dataset", sort=False):
        best = rows.drop_duplicates("depth").fillna({"at_edge": ""})
        rates = [f"{one.learning_rate:g}{EDGES.get(one.at_edge, '')}" for one in best.itertuples()]
        lines.append([f"{TITLES[dataset]}, rate", "", *rates])
        for loss in (1, 0.1, 0.01, 0.001):
            cells = [
                f"> {one.epochs_trained:g}"
                if one.seeds_below < one.seeds
                else f"{one.epochs_mean:.3g}"
                for one in rows[rows.threshold == loss].itertuples()
            ]
            lines.append([TITLES[dataset], f"{loss:g}", *cells])
    return table(f"|loss|{'|'.join(f'L = {depth}' for depth in numbers.depth.unique())}", lines)


def depth_and_epochs() -> pd.DataFrame:
    """Rank correlation of depth with the epochs to a loss; a loss not reached counts as last."""
    losses, lines = (1.0, 0.3, 0.1, 0.03, 0.01), {}
    values = kept("docs/measured/training").set_index("quantity").value
    numbers = kept("studies/small/table_epochs").query("rate_for == 'depth'")
    for dataset, rows in numbers.groupby("dataset", sort=False):
        lines[TITLES[dataset]] = [
            spearmanr(some.depth, some.epochs_mean.fillna(np.inf)).statistic
            if some.epochs_mean.any() else math.nan
            for some in (rows[rows.threshold == loss] for loss in losses)
        ]  # fmt: skip
    lines["digits"] = [values[f"digits, rank correlation to {loss:g}"] for loss in losses]
    names = "|".join(f"loss {loss:g}" for loss in losses)
    return table(f"|{names}", ([words, *map(signed, line)] for words, line in lines.items()))


def predictors() -> pd.DataFrame:
    """ρ with the epochs: of all, ReLU and linear networks. Bold where it is decided."""

    def cell(rows: pd.DataFrame, measure: str, name: str = "rho") -> str:
        words = signed(rows[name][measure])
        return f"**{words}**" if rows[f"{name}_decided"][measure] else words

    lines = []
    for path in PREDICTORS:
        shown = kept(path).query("shown")
        for (dataset, loss), rows in shown.groupby(["dataset", "loss"], sort=False):
            every, relu, linear = (
                rows[rows.group == name].set_index("measure") for name in ("all", "relu", "linear")
            )
            lines.append([
                f"{TITLES[dataset]}, {loss.replace('_', ' ')}",
                cell(every, "activation"), cell(every, "kappa"),
                cell(every, "kappa", "given_activation"),
                cell(every, "label_complexity", "given_activation"),
                *(cell(relu, name) for name in ("kappa", "label_complexity", "width")),
                cell(linear, "kappa"),
            ])  # fmt: skip
    return table("|all: activation|κ|κ, given it|label complexity, given it|ReLU: κ"
                 "|label complexity|width|linear: κ", lines)  # fmt: skip


# Time and memory


def measured(kind: str) -> pd.DataFrame:
    """Rows of docs/measured/performance.csv."""
    rows = kept("docs/measured/performance").query("table == @kind")
    return table("|measured", (
        [one.quantity, f"{one.value:g} {one.unit}".strip()]
        for one in rows.fillna({"unit": ""}).itertuples()
    ))  # fmt: skip


runs, parts = (functools.partial(measured, kind) for kind in ("runs", "parts"))


def cost_of_studies() -> pd.DataFrame:
    costs = {
        # a rule's jobs for a data set count for each artefact that takes some of them
        path.parent.name: pd.read_csv(path)
        .fillna({"dataset": ""})
        .groupby(["rule", "dataset"])
        .max()
        for path in sorted(ROOT.glob("studies/*/costs.csv"))
    }
    return table("study|CPU time, hours|peak memory of a job, GB", (
        [f"`{name}`", f"{jobs.cpu_s.sum() / 3600:.1f}", f"{jobs.peak_memory_mb.max() / 1000:.1f}"]
        for name, jobs in costs.items()
    ))  # fmt: skip


def kernels() -> pd.DataFrame:
    """What `make bench` measured."""
    numbers = kept("docs/measured/kernel").set_index(["n", "depth", "dtype", "package"])

    def cell(*of: object) -> str:
        if of not in numbers.index:
            return "–"
        one, ours = numbers.loc[of], of[-1] == "ntkcond"
        first = f"{100 * one.share_of_rate:.0f} %" if ours else f"{digits(one.times_ours)} ×"
        return f"{first}, {one.extra_mib:,.0f} MiB"

    names = ("ntkcond", "asdfghjkl", "nngeometry", "neural_tangents", "jacobian")
    return table("n, L, type|ours|asdfghjkl|nngeometry|neural-tangents|torch.func", (
        [f"{n:,}, {L}, {dtype}", *(cell(n, L, dtype, name) for name in names)]
        for n, L, dtype in (
            (2000, 10, "float64"), (2000, 10, "float32"), (512, 10, "float64"), (500, 3, "float64")
        )
    ))  # fmt: skip


def modules() -> pd.DataFrame:
    ways, lines = ("unchecked", "torch_func", "nngeometry"), []
    cases = kept("docs/measured/module").set_index("way")
    cases = cases.replace({"case": {"transformer": "4 blocks"}})
    for (case, n), rows in cases.groupby(["case", "n"], sort=False):
        ours = f"{digits(rows.seconds['ntkcond'])} s, {rows.extra_mib['ntkcond']:,} MiB"
        others = [
            f"{digits(rows.times_ours[way], 2)} ×, {rows.extra_mib[way]:,} MiB"
            if way in rows.index else "refused"
            for way in ways
        ]  # fmt: skip
        lines.append([f"{TITLES[case]}, n = {n:,}", ours, *others])
    return table("|ours|without a certificate|torch.func|nngeometry", lines)


def whole_jobs() -> pd.DataFrame:
    """Whole data sets in one NTK: time, memory, κ and λ_min."""
    jobs = kept("docs/measured/whole").set_index("job")
    lines = []
    for dataset, depth, _, one in _whole_sets():
        kernel, spectrum = (
            jobs.loc[f"{of}/{dataset}/relu/{depth}"] for of in ("kernel", "spectrum")
        )
        lines.append([
            f"{TITLES[dataset]}, L = {depth}", one.seeds, f"{kernel.seconds:,.0f}",
            f"{spectrum.seconds:,.0f}", f"{spectrum.factor_s:,.0f}", f"{spectrum.memory_gb:.1f}",
            power(one.kappa_mean, 2), digits(one.lambda_min, 4),
            f"{math.ceil(1e5 * one.lambda_min_error) / 1e5:.5f}",  # a bound: never rounded down
        ])  # fmt: skip
    return table("|initialisations|kernel, s|spectrum, s|of it the factor, s|its memory, GB|κ"
                 "|least λ_min|±, at most", lines)  # fmt: skip
