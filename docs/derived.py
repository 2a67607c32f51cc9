"""Values that pages state and that take a computation, by their names."""

import re
from collections.abc import Iterator

import numpy as np
import pandas as pd
from scipy.stats import spearmanr, ttest_1samp

from ntkcond.artefacts.claims import counts
from ntkcond.steps.kernel import file_bytes
from stated import ROOT, Quantity, Value, table

WHOLE = "studies/whole/fig_whole"
PREDICTORS = ("fig_predictors", "studies/small/fig_predictors")


def claim_counts(path: str = "claims") -> dict[str, dict[str, int]]:
    """{kind: {verdict: how many}}."""
    return counts(table(path).fillna({"same_as": "", "support": ""}))


def derived() -> Iterator[tuple[str, Value]]:
    for prefix, path in (("", "claims"), ("images: ", "tests/reference/images/claims")):
        counted = claim_counts(path)
        yield f"{prefix}claims", sum(sum(verdicts.values()) for verdicts in counted.values())
        for kind, verdicts in counted.items():
            yield f"{prefix}{kind}", sum(verdicts.values())
            for verdict, count in verdicts.items():
                yield f"{prefix}{kind}: {verdict}", count
    yield from of_training()
    yield from of_when()
    yield from of_whole()
    yield from of_predictors()
    yield from of_trends()
    yield from of_costs()
    curves = table("fig1").query("activation == 'relu'").groupby("depth")
    for depth, curve in curves:
        above = np.flatnonzero(curve.phi_deg > curve.theta_in_deg)[-1]
        two = curve.iloc[above : above + 2]
        gap = (two.phi_deg - two.theta_in_deg).to_numpy()
        place = np.interp(0, -gap, two.theta_in_deg)
        yield f"largest θ with φ > θ, L = {depth:.0f}", Quantity(place, "°")


def of_training() -> Iterator[tuple[str, Value]]:
    """Table 1; in `small` the rank correlation of epochs with depth, a loss not reached as last."""
    reached = table("studies/small/table_epochs").query("rate_for != 'threshold'")
    for (dataset, rate_for, loss), rows in reached.groupby(["dataset", "rate_for", "threshold"]):
        if rows.epochs_mean.any():
            rho = spearmanr(rows.depth, rows.epochs_mean.fillna(np.inf)).statistic
            yield f"{dataset}, epochs to {loss:g} with depth, best rate for each {rate_for}", rho
    epochs = table("studies/table_1/table_generalization").set_index("depth")
    fewer = epochs.last_epoch_mean[1] / epochs.last_epoch_mean.drop(1)
    yield "epochs at L = 1 to deeper, least", fewer.min()
    yield "epochs at L = 1 to deeper, most", fewer.max()
    accuracy = epochs.test_accuracy_percent_mean
    yield "Table 1, fall", Quantity(accuracy[1] - accuracy[12], "%")
    yield "Table 1, best above L = 1", Quantity(accuracy.max() - accuracy[1], "%")
    above = accuracy - epochs.paper_test_accuracy_percent
    yield "Table 1, above the paper, L = 1", Quantity(above[1], "%")
    yield "Table 1, above the paper, least", Quantity(above.min(), "%")
    yield "Table 1, above the paper, most of the others", Quantity(above.drop(1).max(), "%")
    kept = table("studies/table_1/claims").set_index("id").spread
    yield "Table 1, margin", Quantity(numbers_in(kept["6-tradeoff"])[0], "%")
    angles = np.log(table("fashion_angles")[["relu_deg", "linear_deg"]])
    gain = (angles.relu_deg - angles.linear_deg).to_numpy()
    yield "fashion angles, p", ttest_1samp(gain, 0, alternative="greater").pvalue
    yield "fashion angles, seeds with ReLU above", int((gain > 0).sum())


def of_when() -> Iterator[tuple[str, Value]]:
    """When ReLU helps: pairs near the rule's limit, the tenth layer and beyond, λ_min at m = n."""
    numbers = table("studies/when/fig_when_data")
    away = np.exp(np.abs(np.log(numbers.predicted_kappa / numbers.kappa)))
    yield "when, median", (away.groupby(numbers.dataset).median().max() - 1)
    depths = table("studies/when/fig_depth_steps")
    steps = depths.set_index(["dataset", "depth"])
    tenth, last = steps.loc[("all", 10)], steps.loc[("librispeech", 30)]
    yield "tenth layer, change", (1 - tenth.change_mean)
    yield "tenth layer, least", (1 - tenth.change_high)
    yield "tenth layer, most", (1 - tenth.change_low)
    yield "tenth layer, power", 100 * tenth.power
    yield "speech, L = 20 to 30", (last.change_mean - 1)
    yield "speech, L = 20 to 30, p", last.p_rise
    pairs = table("fig_when").query(
        "cause == 'pairs' and level == 45 and formula_relu_to_linear < 1"
    )
    yield "pairs at 45°, most that ReLU raises κ", pairs.relu_to_linear.max() - 1
    ratios = table("studies/when/fig_lambda_min")
    square = ratios[ratios.width == ratios.n].groupby(["dataset", "depth"]).ratio_mean
    few = square.agg(["min", "max"])
    shallow = few.loc[[("mnist", 1), ("mnist", 3)]]
    yield "λ_min at m = n, mnist, least", shallow["min"].min()
    yield "λ_min at m = n, mnist, most", shallow["max"].max()
    yield "λ_min at m = n, gaussian, L = 10, least", few.loc[("gaussian", 10), "min"]
    yield "λ_min at m = n, gaussian, L = 10, most", few.loc[("gaussian", 10), "max"]
    yield "λ_min at m = n, least", few["min"].min()
    yield "λ_min at m = n, most", few["max"].max()


def of_whole() -> Iterator[tuple[str, Value]]:
    """How κ of whole data sets goes with n: the exponent."""
    numbers = table(WHOLE).query("activation == 'relu' and depth > 0")
    for (source, depth), rows in numbers.groupby(["source", "depth"]):
        ends = rows.sort_values("n").iloc[[0, -1]]
        size = np.diff(np.log(ends.n))[0]
        for words, column in (("κ", "kappa_mean"), ("κ at infinite width", "infinite_kappa_mean")):
            growth = np.diff(np.log(ends[column]))[0] / size
            yield f"whole {source}, L = {depth:.0f}, growth of {words}", growth


def of_predictors() -> Iterator[tuple[str, Value]]:
    """In how many cases (data sets and losses) a correlation is decided; rates at an edge."""
    shown = pd.concat([table(path).query("shown") for path in PREDICTORS])
    names = [name.removesuffix("_decided") for name in shown if name.endswith("_decided")]
    for (group, measure), rows in shown.groupby(["group", "measure"]):
        for name in names:
            yield f"{group}, {measure}, {name}, decided", rows[f"{name}_decided"].sum()
            yield f"{group}, {measure}, {name}, cases", rows[name].notna().sum()
    relu = shown.query("group == 'relu'").set_index(["dataset", "loss", "measure"])
    rho = relu.rho.unstack()
    yield "cases in which label complexity is above κ", (rho.label_complexity > rho.kappa).sum()
    tests = table("rank_correlations").set_index(["case", "slope"])
    levels = tests.permutations.dropna().xs(0, level="slope")
    yield "level of permutations, least", Quantity(levels.min(), "%")
    yield "level of permutations, most", Quantity(levels.max(), "%")
    reached = table("studies/small/fig_speed").query("shown and epochs.notna()")
    for (activation, loss), rows in reached.groupby(["activation", "loss"]):
        networks = f"{activation} networks that reach the {loss} loss"
        yield networks, len(rows)
        for edge in ("lowest", "highest"):
            yield f"{networks}, at the {edge} rate", (rows.at_edge == edge).sum()


def of_trends() -> Iterator[tuple[str, Value]]:
    """How often the test of trends is wrong, by simulation."""
    trends = table("trends").query("seeds == 5").set_index("curve")
    large = trends[trends.index.str.contains(r"falls by 2\.5|falls slowly by 2\.5")]
    unequal = large.index.str.contains("from 0.2")
    passed = large.holds + large.not_contradicted
    yield "violations that pass", passed.max()
    yield "violations that pass, equal σ", passed[~unequal].max()
    flat = trends[trends.index.str.contains("is flat") & trends.index.str.contains("by 8 (?:σ )?a")]
    yield "flat steps that are confirmed", flat.holds.max()
    half = trends[trends.index.str.contains(r"falls by 1\.25")]
    yield "violations half as large that pass", (half.holds + half.not_contradicted).max()


def of_costs() -> Iterator[tuple[str, Value]]:
    for path in sorted(ROOT.glob("studies/*/costs.csv")):
        # a rule's jobs for a data set count for each artefact that takes some of them
        jobs = pd.read_csv(path).fillna({"dataset": ""}).groupby(["rule", "dataset"])
        yield f"CPU time of {path.parent.name}", Quantity(jobs.cpu_s.max().sum(), "s")
        memory = 1e6 * jobs.peak_memory_mb.max().max()
        yield f"memory of {path.parent.name}", Quantity(memory, "B")
    yield "file of an NTK of 60,000", Quantity(file_bytes(60_000, 60_000, seeds=1), "B")
    ranks = table("ranks").set_index(["n", "ranks"])
    for name, part in (("kernel", "kernel_s"), ("factor", "factor_s")):
        yield f"two ranks to one process, {name}", ranks[part][20_000, 2] / ranks[part][20_000, 0]


def numbers_in(words: object) -> list[float]:
    """The numbers in a cell of the claims, such as 1.092e−05 to 0.0001468."""
    found = re.findall(r"-?\d[\d.]*(?:e-?\d+)?", str(words).replace("−", "-"))
    return [float(word) for word in found]
