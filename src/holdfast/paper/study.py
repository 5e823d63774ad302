"""Declared experiments: every method on every dataset, with every deployed network.

A cell is one method on one dataset with one deployed network.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from holdfast import datasets
from holdfast.datasets.cards import Card
from holdfast.families.changes import bootstrap, leave_one_out, seeds
from holdfast.families.recipe import PAPER_RECIPES, Recipe, Retraining
from holdfast.models.merged import Groups
from holdfast.paper.keys import ENGINE, FORMAT, described, versions_in_keys
from holdfast.search.counterfactuals import Method
from holdfast.search.pipeline import make_method
from holdfast.tabular.encoding import SCALINGS, Scaling
from holdfast.utils.digests import digest
from holdfast.utils.settings import check_whole

FIRST = 1000  # seed of the first retrained network; deployed ones have lower seeds, so the two never meet
GROUPS: dict[str, Groups] = {"warfarin": ((0,), (1, 2))}  # the paper's: classes 1 and 2 count as the same

# A kind of change -> its members, from how many there are, how many training rows, and the deployed network. New seeds
# are the same for every deployed network, so that they are trained once.
CHANGES: dict[str, Callable[[int, int, Retraining], list[Retraining]]] = {
    "seeds": lambda members, rows, base: seeds(members, start=FIRST),
    "leave-one-out": lambda members, rows, base: leave_one_out(members, rows, seed=base.init_seed, base=base),
    "bootstrap": lambda members, rows, base: bootstrap(members, base=base),
}

FIELD_TYPES: tuple[tuple[tuple[str, ...], Any, str], ...] = (
    (("name", "settings", "device"), str, "a word"),
    (("datasets", "methods", "changes", "base_seeds", "untargeted"), (tuple, list), "a tuple"),
    (("scalings", "recipes", "splits"), Mapping, "given by dataset, {'german': ...}"),
)

Entry = str | tuple[str, Method | Callable[[str], Method]]


@dataclass(frozen=True)
class Cell:
    """One method on one dataset with one deployed network. The key is a digest of all that decides the result."""

    dataset: str
    base_seed: int
    method: str
    key: str


@dataclass(frozen=True)
class Study:
    """An experiment: every method on every dataset, with every deployed network.

    A method is a name with its defaults ("pgd+sns"), or a name and a value, or a name and a function of the dataset's
    name that gives the value, where settings differ. Recipes and scalings are the paper's but where named.

    Attributes:
        name: of the study
        datasets: names of `holdfast.datasets.DATASETS`
        methods: names, or pairs of a name and a method, or of a name and a function of the dataset's name
        changes: kinds, and members of each
        rows: of the test split to explain, the first ones; None for all
        base_seeds: one deployed network each
        space: "free", where every number may take any value, or "schema", what a person can do
        settings: what to call these settings in the rows: "text", "release"
        scalings: by dataset, where not its own
        recipes: by dataset, where not the paper's
        splits: training and test rows, where not its own
        untargeted: datasets where a search may end in any other class, also one of the same group
        device: "cpu" or "cuda"

    Examples:
        >>> import holdfast as hf
        >>> from holdfast.paper.study import Study
        >>> study = Study(
        ...     name="tiny",
        ...     datasets=("german",),
        ...     methods=(("pgd", hf.PGD(levels=2, steps=5)),),
        ...     changes=(("seeds", 2),),
        ...     rows=4,
        ...     recipes={"german": hf.Recipe(hidden=(4,), epochs=1)},
        ... )
        >>> [(cell.dataset, cell.base_seed, cell.method) for cell in study.cells]
        [('german', 0, 'pgd')]

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 5.1, "Methodology" and "Retraining Controls":
    every method on every dataset, with 100 retrained networks for each kind of change. The paper's own study is
    `holdfast.paper.declared.PAPER`.
    """

    name: str
    datasets: tuple[str, ...]
    methods: tuple[Entry, ...]
    changes: tuple[tuple[str, int], ...] = (("seeds", 100), ("leave-one-out", 100))
    rows: int | None = None
    base_seeds: tuple[int, ...] = (0,)
    space: Literal["free", "schema"] = "free"
    settings: str = "own"
    scalings: Mapping[str, Scaling] = field(default_factory=dict)
    recipes: Mapping[str, Recipe] = field(default_factory=dict)
    splits: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    untargeted: tuple[str, ...] = ()
    device: str = "cpu"

    def __post_init__(self) -> None:
        self._check_types()
        self._check_numbers()
        for name, given in {"datasets": self.datasets, "methods": self.names, "base_seeds": self.base_seeds}.items():
            if not given or len(set(given)) < len(given):
                raise ValueError(f"{name} must be a tuple of one or more different ones, got {given!r}")
        for dataset in (*self.datasets, *self.scalings, *self.recipes, *self.splits, *self.untargeted):
            datasets.card(dataset)
        for dataset in self.datasets:
            for name in self.names:
                self.method(dataset, name)
        kinds = [kind for kind, _ in self.changes]
        if not kinds or not set(kinds) <= CHANGES.keys() or len(set(kinds)) < len(kinds):
            raise ValueError(f"changes must be different ones of {', '.join(CHANGES)}, got {kinds}")
        for dataset, split in self.splits.items():
            if sum(split) > datasets.card(dataset).rows:
                raise ValueError(f"the split of {dataset} is {split}; it has {datasets.card(dataset).rows} rows in all")
        if self.space not in ("free", "schema"):
            raise ValueError(f"space must be 'free' or 'schema', got {self.space!r}")

    def _check_types(self) -> None:
        for names, kind, description in FIELD_TYPES:
            for name in names:
                given = getattr(self, name)
                if not isinstance(given, kind) or given == "":
                    raise TypeError(f"{name} must be {description}, got {given!r}")
        for method in self.methods:
            if not isinstance(method, str) and not _is_pair(method):
                raise TypeError(f"methods are names, or pairs of a name and a method, got {method!r}")
        for change in self.changes:
            if not _is_pair(change):
                raise TypeError(f"changes are pairs of a kind and a number of members, ('seeds', 100), got {change!r}")
        for dataset, split in self.splits.items():
            if not _is_pair(split):
                raise TypeError(f"the split of {dataset} must be two numbers of rows, (800, 200), got {split!r}")
        for dataset, recipe in self.recipes.items():
            if not isinstance(recipe, Recipe):
                raise TypeError(f"recipes must be Recipes, but that of {dataset} is {recipe!r}")
        for dataset, scaling in self.scalings.items():
            if scaling not in SCALINGS:
                raise ValueError(f"the scaling of {dataset} is {scaling!r}; choose one of {', '.join(SCALINGS)}")
        if not self.device.startswith(("cpu", "cuda")):
            raise ValueError(f"device is {self.device!r}; choose 'cpu' or 'cuda'")

    def _check_numbers(self) -> None:
        for kind, members in self.changes:
            check_whole(f"the members of changes '{kind}'", members, least=1)
        if self.rows is not None:
            check_whole("rows", self.rows, least=1)
        for dataset, split in self.splits.items():
            for part in split:
                check_whole(f"each part of the split of {dataset}", part, least=1)
        for seed in self.base_seeds:
            check_whole("each of base_seeds", seed, least=0)
            if seed >= FIRST:
                raise ValueError(
                    f"each of base_seeds must be below {FIRST}, where retrained networks begin, got {seed}"
                )

    def method(self, dataset: str, name: str) -> Method:
        """The method of that name as it is used on that dataset."""
        entry = next((entry for entry in self.methods if _name(entry) == name), None)
        if entry is None:
            raise ValueError(f"study '{self.name}' has no method '{name}'; it has {', '.join(self.names)}")
        if isinstance(entry, str):
            return make_method(entry)
        given: Any = entry[1]
        found = given if isinstance(given, type) or hasattr(given, "fit") or not callable(given) else given(dataset)
        if isinstance(found, type) or not (callable(found) and hasattr(found, "fit")):
            raise TypeError(
                f"method '{name}' on {dataset} is {found!r}; give a value such as PGD(radius=3.0), or a function of "
                "the dataset's name that returns one"
            )
        chosen: Method = found
        return chosen

    def recipe(self, dataset: str) -> Recipe:
        found = self.recipes.get(dataset) or PAPER_RECIPES.get(dataset)
        if found is None:
            raise ValueError(
                f"there is no recipe for {dataset}; give one: Study(..., recipes={{'{dataset}': Recipe(...)}})"
            )
        return found

    def scaling(self, dataset: str) -> Scaling:
        return self.scalings.get(dataset, datasets.card(dataset).scaling)

    def card(self, dataset: str) -> Card:
        """The dataset, with the study's own split."""
        card = datasets.card(dataset)
        return replace(card, split=self.splits.get(dataset, card.split))

    @property
    def names(self) -> tuple[str, ...]:
        """Of the methods."""
        return tuple(map(_name, self.methods))

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Every cell, in the study's own order."""
        return tuple(
            Cell(dataset, seed, name, self._key(dataset, seed, name))
            for dataset in self.datasets
            for seed in self.base_seeds
            for name in self.names
        )

    def _key(self, dataset: str, base_seed: int, method: str) -> str:
        """What was computed with another setting, another torch or from another file is another cell."""
        decisive = {
            "format": FORMAT,
            "versions": versions_in_keys(),
            "file": datasets.card(dataset).sha256,
            "split": self.card(dataset).split,
            "scaling": self.scaling(dataset),
            "recipe": described(self.recipe(dataset)),
            "groups": [GROUPS.get(dataset), dataset in self.untargeted],
            "method": [method, described(self.method(dataset, method))],
            "own": [dataset, base_seed, self.changes, FIRST, self.rows, self.space, self.settings, self.device],
        }
        if self.space == "schema":  # the free space has no discrete points
            decisive["engine"] = ENGINE
        return digest(decisive)[:20]


def _is_pair(value: object) -> bool:
    return isinstance(value, (tuple, list)) and len(value) == 2


def _name(entry: Entry) -> str:
    return entry if isinstance(entry, str) else entry[0]


def check_study(study: Any) -> None:
    if not isinstance(study, Study):
        raise TypeError(f"expected a Study, got {type(study).__name__}; paper.declared has the paper's")
