"""The description of an artefact."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Spec:
    """A module's `SPEC = Spec(…)`, of literals only: it is read without running the module.

    title, section, caption: in the report, the last in reStructuredText. inputs: the module's
    `table` gets each by this name: other artefacts, as data frames; `sweep/…`, `spectrum`,
    `closest_pair`, `variant`, `architecture`, `descent`, `speed`, `sgd`: the paths of these jobs'
    files, for the data sets of `datasets`. `artefacts`: the records of all artefacts that have
    costs; in a study, of those that it keeps and what they take. settings: the config's settings
    that `table` gets, by their place there: training.rate_for; datasets.*.source: of each of its
    data sets; keep.datasets: those of all else that a study keeps, and of `inputs` only what has
    some of them. datasets: the entry of the config's `figures` that lists the artefact's data sets.
    about: experiment or training: all of these settings are kept in the provenance. files:
    suffixes; `draw` makes .pdf and .png, `markdown` .md, `html` .html. reported: which of them the
    report shows. default: whether `snakemake` builds it without a target; costs: whether it is in
    the table of costs."""

    title: str
    section: str
    caption: str
    inputs: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    datasets: str | None = None
    about: str | None = None
    files: tuple[str, ...] = (".pdf", ".png", ".csv")
    reported: tuple[str, ...] = (".pdf", ".png", ".csv", ".html")
    default: bool = True
    costs: bool = True

    @property
    def drawn(self) -> tuple[str, ...]:
        """Suffixes of what is made from the CSV alone."""
        return tuple(suffix for suffix in self.files if suffix != ".csv")
