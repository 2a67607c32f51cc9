"""Tables that pages show: each function gives the lines of one, `<!-- table NAME -->` in a page."""

import copy
import math
import re
from collections.abc import Iterator

import numpy as np
import pandas as pd
import yaml

from derived import PREDICTORS, WHOLE, claim_counts
from ntkcond.artefacts.verdicts.claim import UNTESTED
from ntkcond.pipeline.config import typed
from ntkcond.pipeline.jobs import Jobs
from stated import ROOT, power, table

DATASETS = {
    "synthetic": "synthetic", "mnist": "MNIST", "fashion_mnist": "Fashion-MNIST",
    "librispeech": "LibriSpeech", "digits": "digits",
}  # fmt: skip


def row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def head(*cells: str) -> list[str]:
    return [row(*cells), "|" + "---|" * len(cells)]


def kappa(value: float) -> str:
    """53,000; 4.3·10⁸; ∞; three digits at most."""
    if math.isinf(value):
        return "∞"
    return power(value, 1) if value >= 1e5 else digits(value)


def digits(value: float, kept: int = 3) -> str:
    """A number with so many significant digits."""
    if math.isnan(value):
        return "–"
    decimals = max(0, kept - 1 - math.floor(math.log10(abs(value)))) if value else 0
    rounded = round(value, kept - 1 - math.floor(math.log10(abs(value)))) if value else 0
    return f"{rounded:,.{decimals}f}"


# κ and angles


def full_size() -> Iterator[str]:
    numbers = table("studies/full_size/fig2").dropna(subset="kappa_verdict")
    curves = numbers.set_index(["dataset", "activation", "depth"]).sort_index()
    at = [f"L = {depth}" for depth in (0, 1, 10)]
    yield from head("", "κ, L = 0", *at[1:], "min φ, L = 0", *at[1:])
    for dataset in numbers.dataset.unique():
        for activation, words in (("relu", "ReLU"), ("linear", "linear")):
            curve = curves.loc[(dataset, activation)]
            kappas = [kappa(curve.kappa_mean[depth]) for depth in (0, 1, 10)]
            angles = [f"{digits(curve.min_angle_deg_mean[d], 2)}°" for d in (0, 1, 10)]
            yield row(f"{DATASETS[dataset]}, {words}", *kappas, *angles)


def whole() -> Iterator[str]:
    """ReLU networks, by the first 512 samples and by all."""
    numbers = table(WHOLE).query("activation == 'relu' and depth > 0")
    yield from head("", "all, n", "κ, n = 512", "all", "m = ∞, n = 512", "all", "min φ, all")
    for (source, depth), rows in numbers.groupby(["source", "depth"], sort=False):
        sizes = rows.set_index("n").sort_index()
        first, last = sizes.loc[512], sizes.iloc[-1]
        kappas = (first.kappa_mean, last.kappa_mean)
        kappas += (first.infinite_kappa_mean, last.infinite_kappa_mean)
        angle = f"{last.min_angle_deg_mean:.1f}°"
        name = f"{DATASETS[source]}, L = {depth:.0f}"
        yield row(name, f"{sizes.index[-1]:,}", *map(kappa, kappas), angle)


NETWORKS = {
    "plain": "fully connected", "biases": "with biases", "residual": "residual",
    "residual_linear": "residual, a linear layer last", "normalised": "normalised",
    "convolutional": "convolutional", "transformer": "transformer",
}  # fmt: skip


def architectures() -> Iterator[str]:
    yield from head("", "ReLU, L = 1", "L = 8", "linear, L = 1", "L = 8")
    kinds = table("fig_architectures").set_index(["architecture", "activation", "depth"])
    for kind in kinds.index.unique("architecture"):
        rows = [kinds.loc[kind, name, depth] for name in ("relu", "linear") for depth in (1, 8)]
        cells = (
            kappa(one.kappa_median)
            if one.kappa_verdict == "resolved"
            else f"> {power(one.kappa_lower_bound, 1)}"
            for one in rows
        )
        yield row(NETWORKS[kind], *cells)


def linearised() -> Iterator[str]:
    from ntkcond.networks.activations import ACTIVATIONS
    from ntkcond.networks.mlp import MLP
    from ntkcond.ntk.linearised import linearised as of_network

    yield from head("", "mean, μ", "scale, k′", "lift, s")
    for depth in (1, 10):
        about = of_network(0.0, MLP(ACTIVATIONS["relu"], depth, math.inf))
        yield row(f"L = {depth}", *(digits(x, 2) for x in (about.mean, about.slope, about.lift)))


def whitened() -> Iterator[str]:
    """100 whitened images of MNIST."""
    yield from head("κ", "inputs", "ReLU", "without λ_max", "centred NTK", "ReLU less its mean")
    numbers = table("studies/when/fig_when_data").query(
        "dataset == 'mnist_4000' and variant == 'whitened' and n == 100"
    )
    names = ["input_kappa", "kappa", "rest_kappa", "centred_kappa", "zero_mean_kappa"]
    for depth in (1, 10):
        [one] = numbers[numbers.depth == depth][names].to_numpy()
        yield row(f"L = {depth}", *map(digits, one))


def when_data() -> Iterator[str]:
    """How often the rule is right, and how far the linearised NTK is off."""
    yield from head("", "rule right", "at width 512", "linearised κ off by, median", "most",
                    "κ of ReLU less its mean / κ of inputs, most")  # fmt: skip
    numbers = table("studies/when/fig_when_data")
    rule = numbers.input_kappa > numbers.lowers_above
    away = np.exp(np.abs(np.log(numbers.predicted_kappa / numbers.kappa)))
    for dataset, some in numbers.groupby("dataset", sort=False):
        right = [
            ((some[name] < some.input_kappa) == rule[some.index]).sum()
            for name in ("kappa", "kappa_at_width")
        ]
        apart = away[some.index]
        zero = (some.zero_mean_kappa / some.input_kappa).max()
        yield row(
            DATASETS[dataset.removesuffix("_4000")], f"{right[0]} of {len(some)}", right[1],
            *map(digits, (apart.median(), apart.max())), digits(zero, 2),
        )  # fmt: skip


# Claims and training


def verdicts() -> Iterator[str]:
    counted = claim_counts()
    kinds = ("theorem", "experiment", "slip")
    yield from head("verdict", "theorems, closed forms", "statements about data and training",
                    "slips of the text")  # fmt: skip
    for verdict in dict.fromkeys(v for kind in kinds for v in counted[kind]):
        yield row(verdict, *(counted[kind].get(verdict) or "–" for kind in kinds))
    yield row("all", *(sum(counted[kind].values()) for kind in kinds))


def verdicts_of_studies() -> Iterator[str]:
    """Where those of a study that is up to date differ from those of the default config."""
    states = (ROOT / "studies/README.md").read_text("utf-8")
    fresh = re.findall(r"^\| (\w+) \| claims \| fresh \|", states, re.M)
    files = {"default config": "tests/reference/default/claims"}
    files |= {f"`{study}`": f"studies/{study}/claims" for study in fresh}
    overall = pd.DataFrame({name: _of_own_data(file) for name, file in files.items()})
    differ = overall.replace(UNTESTED, np.nan).nunique(axis=1) > 1
    yield from head("claim", *files)
    for name, found in overall[differ].fillna("–").iterrows():
        yield row(f"`{name}`", *found)


def _of_own_data(file: str) -> pd.Series:
    """Overall verdicts; a study's only where a row is of its own data and not of the default's."""
    claims = table(file)
    if "setting" in claims:
        own = claims.setting.astype(str).str.contains("MNIST|LibriSpeech").groupby(claims.id).any()
        claims = claims[claims.id.map(own)]
    return claims.drop_duplicates("id").set_index("id").overall


def table_1() -> Iterator[str]:
    yield from head("L", "rate", "epochs", "test accuracy (%)", "paper (%)")
    for one in table("studies/table_1/table_generalization").itertuples():
        accuracy = f"{one.test_accuracy_percent_mean:.2f} ± {one.test_accuracy_percent_std:.2f}"
        yield row(
            one.depth, f"{one.learning_rate:g}", f"{one.last_epoch_mean:g}", accuracy,
            f"{one.paper_test_accuracy_percent:.2f}",
        )  # fmt: skip


def figure_3() -> Iterator[str]:
    """Epochs to some losses; above the number of epochs where a loss was not reached."""
    numbers = table("studies/figure_3/table_epochs").query("rate_for == 'depth'")
    depths = numbers.depth.unique()
    yield from head("", "loss", *(f"L = {depth}" for depth in depths))
    for dataset, rows in numbers.groupby("dataset", sort=False):
        rates = rows.drop_duplicates("depth").learning_rate
        yield row(f"{DATASETS[dataset]}, rate", "", *map("{:g}".format, rates))
        for loss in (1, 0.1, 0.01, 0.001):
            cells = [
                f"> {one.epochs_trained:g}" if np.isnan(one.epochs_mean) else f"{one.epochs_mean:g}"
                for one in rows[rows.threshold == loss].itertuples()
            ]
            yield row(DATASETS[dataset], f"{loss:g}", *cells)


def predictors() -> Iterator[str]:
    """ρ with the epochs: of all networks and of ReLU networks. Bold where it is decided."""
    yield from head("", "all: activation", "κ", "κ, given it", "label complexity, given it",
                    "ReLU: κ", "label complexity", "width")  # fmt: skip

    def cell(rows: pd.DataFrame, measure: str, name: str = "rho") -> str:
        one = rows.loc[measure]
        words = f"{one[name]:+.2f}".replace("-", "−")
        return f"**{words}**" if one[f"{name}_decided"] else words

    for path in PREDICTORS:
        shown = table(path).query("shown")
        for (dataset, loss), both in shown.groupby(["dataset", "loss"], sort=False):
            every, relu = (both[both.group == g].set_index("measure") for g in ("all", "relu"))
            yield row(
                f"{DATASETS[dataset]}, {loss.replace('_', ' ')}",
                cell(every, "activation"), cell(every, "kappa"),
                cell(every, "kappa", "given_activation"),
                cell(every, "label_complexity", "given_activation"),
                *(cell(relu, name) for name in ("kappa", "label_complexity", "width")),
            )  # fmt: skip


# Time and memory


def costs() -> Iterator[str]:
    """CPU time of figure 2, for each data set and rule."""
    yield from head("", "samples, scaled", "kernels", "spectra", "closest pairs", "infinite width")
    numbers = table("studies/full_size/costs").query("artefact == 'fig2'")
    seconds = numbers.dropna(subset="dataset").set_index(["dataset", "rule"]).cpu_s
    for dataset in seconds.index.unique("dataset"):
        rules = ("dataset", "kernel", "spectrum", "closest_pair", "sweep")
        cells = (f"{seconds[dataset, rule]:,.{0 if seconds[dataset, rule] >= 1 else 1}f}"
                 for rule in rules)  # fmt: skip
        yield row(DATASETS[dataset], *cells)


def kernels() -> Iterator[str]:
    """What `make bench` measured."""
    yield from head("n, L, type", "ours", "asdfghjkl", "nngeometry", "neural-tangents",
                    "torch.func")  # fmt: skip
    runs = table("kernel").set_index(["n", "depth", "dtype", "package"]).sort_index()
    for n, depth, dtype in ((2000, 10, "float64"), (2000, 10, "float32"), (512, 10, "float64"),
                            (500, 3, "float64")):  # fmt: skip
        case = runs.loc[(n, depth, dtype)]
        ours = case.loc["ntkcond"]
        cells = [f"{100 * ours.share_of_rate:.0f} %, {ours.extra_mib:.0f} MiB"]
        for name in ("asdfghjkl", "nngeometry", "neural_tangents", "jacobian"):
            one = case.loc[name] if name in case.index else None
            times = one is not None and f"{digits(one.times_ours)} ×, {one.extra_mib:,.0f} MiB"
            cells.append(times or "–")
        yield row(f"{n:,}, {depth}, {dtype}", *cells)


MODULES = {
    "mlp": "MLP with biases, 784–512–512–1", "cnn": "CNN, 3 convolutions, 28 × 28 pixels",
    "resnet18": "ResNet-18, a quarter of its width", "transformer": "transformer, 4 blocks",
}  # fmt: skip


def modules() -> Iterator[str]:
    yield from head("", "ours", "without a certificate", "torch.func", "nngeometry")
    for (case, n), rows in table("module").query("n > 100").groupby(["case", "n"], sort=False):
        ways = rows.set_index("way")
        ours = ways.loc["ntkcond"]
        others = [
            f"{digits(ways.times_ours[way], 2)} ×, {ways.extra_mib[way]:,} MiB"
            if way in ways.index
            else "refused"
            for way in ("unchecked", "torch_func", "nngeometry")
        ]
        time = f"{digits(ours.seconds)} s, {ours.extra_mib:,} MiB"
        yield row(f"{MODULES[case]}, n = {n:,}", time, *others)


def whole_jobs() -> Iterator[str]:
    """Whole data sets in one NTK: time, memory, κ and λ_min."""
    jobs = table("whole").set_index("job")
    numbers = table(WHOLE).query("activation == 'relu' and depth > 0")
    yield from head("", "initialisations", "kernel, s", "spectrum, s", "of it the factor, s",
                    "its memory, GB", "κ", "least λ_min", "±, at most")  # fmt: skip
    for (dataset, depth), sizes in numbers.groupby(["source", "depth"], sort=False):
        kernel, spectrum = (
            jobs.loc[f"{rule}/{dataset}/relu/{depth}"] for rule in ("kernel", "spectrum")
        )
        one = sizes.iloc[-1]
        yield row(
            f"{DATASETS[dataset]}, L = {depth}", one.seeds, f"{kernel.seconds:,.0f}",
            f"{spectrum.seconds:,.0f}", f"{spectrum.factor_s:,.0f}", f"{spectrum.memory_gb:.1f}",
            power(one.kappa_mean, 2), digits(one.lambda_min, 4),
            f"{math.ceil(1e5 * one.lambda_min_error) / 1e5:.5f}",  # a bound: never rounded down
        )  # fmt: skip


def requests() -> Iterator[str]:
    """What jobs on a cluster request, as their steps count it."""
    yield from head("m = 512, five seeds, L = 10", "kernel", "spectrum", "closest_pair")
    default = yaml.safe_load((ROOT / "config.yaml").read_text("utf-8"))
    for name, words, options in (
        ("synthetic", "synthetic, 2,000 samples, n = 512", {}),
        ("mnist", "MNIST, 60,000 samples, n = 512", {}),
        ("mnist", "MNIST, 20,000 samples, n = 20,000", {"samples": 20_000, "block": "all"}),
    ):
        settings = copy.deepcopy(default)
        settings["figures"]["fig2"] = [name]
        settings["datasets"][name] |= options
        cells = [words]
        for rule in ("kernel", "spectrum", "closest_pair"):
            job = {"dataset": name, "network": "relu", "depth": "10"}
            request = Jobs(typed(settings), ROOT).request(rule, job)
            memory, threads = request.megabytes(attempt=1), request.threads(cores=None)
            cores = f", {threads} cores" if threads > 1 else ""
            cells.append(f"{memory / 1000:.1f} GB{cores}")
        yield row(*cells)
