"""Declared experiments that become flat rows on disk, one cell after another.

A cell is one method on one dataset with one deployed network. A study's file has one line of JSON a cell:

    study, cell      the study's name, and a digest of all that decides the cell
    dataset, base_seed, method
    rows             one flat row a kind of change, with the keys of `Audit.rows` and what else a table needs
    each             of the single counterfactuals: which rows were found ("1101"), and for those, in order, what they
                     cost and how many members of each kind undo them

A line is written whole and fsynced, so a run that is killed at any moment loses only the cell it was at. When the last
cell is there, the file is written anew in the study's own order: but for ``seconds`` it has the same bytes however
often it was interrupted. Only one process may run on a file at a time.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, fields, is_dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from holdfast import datasets
from holdfast.audit import Audit, audit
from holdfast.counterfactuals import Counterfactuals, Fitted, Method, assess, other_class
from holdfast.datasets.card import Card
from holdfast.encoding import Encoding, Scaling
from holdfast.families import PAPER_RECIPES, Family, Recipe, Retraining, leave_one_out, seeds, train
from holdfast.families.changes import bootstrap
from holdfast.families.store import default_store, digest
from holdfast.files import write_text
from holdfast.models import Groups, Model, merged, predict
from holdfast.named import Then, named
from holdfast.progress import bar
from holdfast.space import Space

FORMAT = 2  # to be raised whenever a cell comes to hold other numbers
FIELDS = {"study", "cell", "dataset", "base_seed", "method", "rows", "each"}
FIRST = 1000  # seed of the first retrained network; deployed ones have lower seeds, so the two never meet
GROUPS: dict[str, Groups] = {"warfarin": ((0,), (1, 2))}  # the paper's: classes 1 and 2 count as the same

# A kind of change -> its members, from how many there are, how many training rows, and the deployed network. New seeds
# are the same for every deployed network, so that they are trained once.
CHANGES: dict[str, Callable[[int, int, Retraining], list[Retraining]]] = {
    "seeds": lambda members, rows, base: seeds(members, start=FIRST),
    "leave-one-out": lambda members, rows, base: leave_one_out(members, rows, seed=base.init_seed, base=base),
    "bootstrap": lambda members, rows, base: bootstrap(members, base=base),
}

Entry = str | tuple[str, Method | Callable[[str], Method]]


# ---- what is declared ----


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
    """

    name: str
    datasets: tuple[str, ...]
    methods: tuple[Entry, ...]
    changes: tuple[tuple[str, int], ...] = (("seeds", 100), ("leave-one-out", 100))  # kinds, and members of each
    rows: int | None = None  # of the test split to explain, the first ones; None for all
    base_seeds: tuple[int, ...] = (0,)  # one deployed network each
    space: Literal["free", "schema"] = "free"
    settings: str = "own"  # what to call these settings in the rows: "text", "release"
    scalings: Mapping[str, Scaling] = field(default_factory=dict)  # by dataset, where not its own
    recipes: Mapping[str, Recipe] = field(default_factory=dict)  # by dataset, where not the paper's
    splits: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # training and test rows, where not its own
    untargeted: tuple[str, ...] = ()  # datasets where a search may end in any other class, also one of the same group
    device: str = "cpu"

    def __post_init__(self) -> None:
        names = self.names
        for what, given in {"datasets": self.datasets, "methods": names, "base_seeds": self.base_seeds}.items():
            if isinstance(given, str) or not len(given) or len(set(given)) < len(given):
                raise ValueError(f"{what} must be a tuple of one or more different ones, got {given!r}")
        for dataset in (*self.datasets, *self.scalings, *self.recipes, *self.splits, *self.untargeted):
            datasets.card(dataset)
        for dataset in self.datasets:
            for name in names:
                self.method(dataset, name)
        kinds = [kind for kind, _ in self.changes]
        unknown = [kind for kind in kinds if kind not in CHANGES]
        if unknown or not kinds or len(set(kinds)) < len(kinds):
            raise ValueError(f"changes must be different ones of {', '.join(CHANGES)}, got {kinds}")
        if min(members for _, members in self.changes) < 1 or (self.rows is not None and self.rows < 1):
            raise ValueError(f"members and rows must be 1 or more, got {self.changes} and {self.rows}")
        for dataset, (known, asked) in self.splits.items():
            rows = datasets.card(dataset).rows
            if known < 1 or asked < 1 or known + asked > rows:
                raise ValueError(
                    f"the split of {dataset} is {known} and {asked} rows; give 1 or more of each, of {rows} in all"
                )
        if not all(0 <= seed < FIRST for seed in self.base_seeds):
            raise ValueError(
                f"base_seeds are {self.base_seeds}; choose from 0 to {FIRST - 1}, retrained networks have those above"
            )
        if self.space not in ("free", "schema"):
            raise ValueError(f"space must be 'free' or 'schema', got {self.space!r}")

    def method(self, dataset: str, name: str) -> Method:
        """The method of that name as it is used on that dataset."""
        entry = next((entry for entry in self.methods if _name(entry) == name), None)
        if entry is None:
            raise ValueError(f"study '{self.name}' has no method '{name}'; it has {', '.join(self.names)}")
        if isinstance(entry, str):
            return named(entry)
        given: Any = entry[1]
        found = given if isinstance(given, type) or hasattr(given, "fit") else given(dataset)
        if isinstance(found, type) or not (callable(found) and hasattr(found, "fit")):
            raise TypeError(
                f"method '{name}' on {dataset} is {found!r}; give a value such as PGD(radius=3.0), or a function of "
                "the dataset's name that returns one"
            )
        chosen: Method = found
        return chosen

    def recipe(self, dataset: str) -> Recipe:
        return self.recipes.get(dataset, PAPER_RECIPES[dataset])

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
        """What was computed with another setting, by another version or from another file is another cell."""
        described = {
            "format": FORMAT,
            "versions": _versions(),
            "file": datasets.card(dataset).sha256,
            "split": self.card(dataset).split,
            "scaling": self.scaling(dataset),
            "recipe": _described(self.recipe(dataset)),
            "groups": [GROUPS.get(dataset), dataset in self.untargeted],
            "method": [method, _described(self.method(dataset, method))],
            "own": [dataset, base_seed, self.changes, FIRST, self.rows, self.space, self.settings, self.device],
        }
        return digest(described)[:20]


def _name(entry: Entry) -> str:
    return entry if isinstance(entry, str) else entry[0]


def _described(value: Any) -> Any:
    """A setting as JSON, so that two are equal exactly where they mean the same."""
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, Tensor):
        plain = value.detach().cpu().contiguous()
        return [str(plain.dtype), list(plain.shape), hashlib.sha256(plain.numpy().tobytes()).hexdigest()]
    if isinstance(value, (tuple, list)):
        return [_described(part) for part in value]
    if is_dataclass(value) and not isinstance(value, type):
        own = {part.name: _described(getattr(value, part.name)) for part in fields(value)}
        return [f"{type(value).__module__}.{type(value).__qualname__}", own]
    raise TypeError(
        f"a study cannot tell one {type(value).__name__} from another ({value!r}); write methods as frozen dataclasses "
        "of numbers, words, tensors and other such values"
    )


def _versions() -> dict[str, str]:
    from holdfast import __version__  # here, so that the package may come to load this module before it has one

    return {"holdfast": __version__, "torch": torch.__version__, "numpy": np.__version__}


# ---- run ----


def run(
    study: Study,
    file: str | Path,
    *,
    store: str | Path | None = None,
    workers: int | None = None,
    progress: bool = False,
    only: Collection[str] = (),
) -> Path:
    """Compute every cell that the file does not have yet, and append it there.

    ``only`` names datasets and methods to compute now. Families are trained once and kept in the ``store``, a folder
    (default: the user's own).
    """
    path = Path(file)
    wanted = _chosen(study, only)
    known = {line["cell"] for line in _lines(path, study.name)} if path.exists() else set()
    todo = [cell for cell in wanted if cell.key not in known]
    for dataset in dict.fromkeys(cell.dataset for cell in todo):
        if datasets.card(dataset).state() != "here":
            datasets.card(dataset).load()  # says what is wrong and how to get it, before hours of work on the others
    path.parent.mkdir(parents=True, exist_ok=True)
    _mend(path)
    with closing(_computed(study, todo, default_store() if store is None else store, workers, progress)) as lines:
        for line in lines:
            _append(path, line)
    _in_order(study, path)
    return path


def _chosen(study: Study, only: Collection[str]) -> list[Cell]:
    only = [only] if isinstance(only, str) else only
    methods = study.names
    unknown = [name for name in only if name not in (*study.datasets, *methods)]
    if unknown:
        raise ValueError(
            f"study '{study.name}' has no dataset or method '{unknown[0]}'; it has the datasets "
            f"{', '.join(study.datasets)} and the methods {', '.join(methods)}"
        )
    some = [name for name in study.datasets if name in only] or study.datasets
    ways = [name for name in methods if name in only] or methods
    return [cell for cell in study.cells if cell.dataset in some and cell.method in ways]


def _computed(
    study: Study, todo: list[Cell], store: str | Path, workers: int | None, progress: bool
) -> Generator[dict[str, Any]]:
    """The lines of these cells, one by one. What cells share is made once, and let go when the last has had it."""
    with bar(study.name, len(todo), progress) as advance:
        for dataset, own in groupby(todo, key=lambda cell: cell.dataset):
            data = _data(study, dataset)
            for seed, cells in groupby(own, key=lambda cell: cell.base_seed):
                advance(0, f"{dataset}, base seed {seed}, training")
                trial = _trial(study, data, seed, store, workers)
                for cell in cells:
                    advance(0, f"{dataset}, base seed {seed}, {cell.method}")
                    yield _line(study, cell, trial)
                    advance(1)


@dataclass(frozen=True, eq=False)
class Data:
    """A dataset as the study sees it."""

    name: str
    x: Tensor
    y: Tensor
    question: Tensor  # the rows to explain
    space: Space


@dataclass(frozen=True, eq=False)
class Trial:
    """One deployed network of a study, the families that audit it, and what was found for it so far."""

    data: Data
    seed: int
    model: Model
    target: Tensor | None  # None where any other class will do
    families: Mapping[str, Family]  # by kind of change
    groups: Groups | None  # of classes that count as the same in the families, if the model does not say so itself
    answers: dict[str, tuple[Counterfactuals, float]] = field(default_factory=dict)

    def answer(self, method: Method) -> tuple[Counterfactuals, float]:
        """What a method finds, and its seconds. What several start from, as SNS does, is searched for once.

        Where any other class will do, `judged` says the same in the classes that the families have.
        """
        key = digest(_described(method))
        if key not in self.answers:
            self.answers[key] = self._search(method)
        return self.answers[key]

    def _search(self, method: Method) -> tuple[Counterfactuals, float]:
        data, seconds = self.data, 0.0
        if isinstance(method, Then) and method.stabilisers:
            *earlier, last = method.stabilisers
            start, seconds = self.answer(Then(method.method, tuple(earlier)) if earlier else method.method)
            begin = time.perf_counter()
            if isinstance(last, Fitted):
                last = last.fit(data.x, data.y, data.space, self.seed)
            found = last(self.model, start, data.space)
        else:
            begin = time.perf_counter()
            fitted = method.fit(data.x, data.y, data.space, self.seed)
            if self.target is None:
                found = _anywhere_else(fitted, self.model, data.question, data.space)
            else:
                found = fitted(self.model, data.question, self.target, data.space)
        found.found.tolist()  # a GPU works behind: wait for it
        return found, seconds + time.perf_counter() - begin

    def judged(self, answer: Counterfactuals) -> Counterfactuals:
        """The same in the families' classes."""
        if self.groups is None:
            return answer
        model = merged(self.model, self.groups)
        same = assess(model, answer.origin, answer.point, predict(model, answer.point), self.data.space)
        return replace(same, found=answer.found)


def _anywhere_else(method: Method, model: Model, x: Tensor, space: Space) -> Counterfactuals:
    """Any class but a row's own will do: all others count as one for the search, then the one it came to is the target.

    Found are the rows that left their class.
    """
    before, classes = predict(model, x), model(x[:1]).shape[1]
    point = x.clone()
    for own in sorted(set(before.tolist())):
        others = tuple(one for one in range(classes) if one != own)
        # All rows are handed over, those of other classes being there already: a method may look at them together.
        answer = method(merged(model, ((own,), others)), x, torch.ones_like(before), space)
        point = torch.where(((before == own) & answer.found)[:, None], answer.point, point)
    target = predict(model, point)
    answer = assess(model, x, point, target, space)
    return replace(answer, found=answer.found & (target != before))


def _data(study: Study, dataset: str) -> Data:
    card = study.card(dataset)
    table, schema = card.load()
    known, asked = card.divide(table)
    encoding = Encoding.fit(known, schema, study.scaling(dataset))
    x, y, question = (
        part.to(study.device)
        for part in (encoding.encode(known), encoding.labels(known), encoding.encode(asked.iloc[: study.rows]))
    )
    return Data(dataset, x, y, question, Space.free(x) if study.space == "free" else encoding.space)


def trial(
    study: Study, dataset: str, base_seed: int = 0, *, store: str | Path | None = None, workers: int | None = None
) -> Trial:
    """One deployed network of a study and its families, to ask more of than the study's rows tell."""
    if dataset not in study.datasets or base_seed not in study.base_seeds:
        raise ValueError(
            f"study '{study.name}' has no dataset '{dataset}' with base seed {base_seed}; it has "
            f"{', '.join(study.datasets)} with {', '.join(map(str, study.base_seeds))}"
        )
    return _trial(study, _data(study, dataset), base_seed, default_store() if store is None else store, workers)


def _trial(study: Study, data: Data, seed: int, store: str | Path, workers: int | None) -> Trial:
    recipe, base = study.recipe(data.name), Retraining(init_seed=seed, order_seed=seed)

    def trained(members: list[Retraining]) -> Family:
        return train(data.x, data.y, recipe, members, store=store, workers=workers)

    model: Model = trained([base])[0]
    # One family a kind, each by itself in the store: the one of new seeds serves every deployed network.
    families = {kind: trained(CHANGES[kind](members, len(data.x), base)) for kind, members in study.changes}
    groups = GROUPS.get(data.name)
    if groups is not None:
        families = {kind: family.merged(groups) for kind, family in families.items()}
    if data.name in study.untargeted:
        return Trial(data, seed, model, None, families, groups)
    model = model if groups is None else merged(model, groups)
    return Trial(data, seed, model, other_class(model, data.question), families, None)


def _line(study: Study, cell: Cell, trial: Trial) -> dict[str, Any]:
    method = study.method(cell.dataset, cell.method)
    answer, seconds = trial.answer(method)
    found = trial.judged(answer)
    audits = {kind: audit(found, family) for kind, family in trial.families.items()}
    cost = {name: found.cost(norm)[found.found].double().cpu() for name, norm in {"cost_l1": 1, "cost_l2": 2}.items()}
    about = {
        "study": study.name,
        "settings": study.settings,
        "base_seed": cell.base_seed,
        "success": round(found.success, 6),
        **{
            f"{name}_spread": round(float(own.std(correction=0)), 6) if len(own) else None for name, own in cost.items()
        },
        "search": repr(method),
        "recipe": repr(study.recipe(cell.dataset)),
        "scaling": study.scaling(cell.dataset),
        "device": study.device,
        "data": next(iter(trial.families.values())).data,
        **_sums(cost["cost_l2"], audits),
        **_versions(),
        "cell": cell.key,
    }
    return {
        "study": study.name,
        "cell": cell.key,
        "dataset": cell.dataset,
        "base_seed": cell.base_seed,
        "method": cell.method,
        "rows": [
            row | about | {"seeds": _seeds(trial.families[kind])}
            for kind, result in audits.items()
            for row in result.rows(dataset=cell.dataset, method=cell.method, space=study.space, seconds=seconds)
        ],
        "each": {
            "found": "".join("01"[own] for own in found.found.tolist()),
            **{name: [round(value, 6) for value in own.tolist()] for name, own in cost.items()},
            "undone": {kind: _undone(result) for kind, result in audits.items()},
        },
    }


def _sums(cost: Tensor, audits: Mapping[str, Audit]) -> dict[str, float]:
    """Σc, Σu, Σc², Σcu, Σu² of what counterfactuals cost and the share of members that undo them, kinds averaged.

    Sums over several cells give the regression of u on c over all of them: the paper's R².
    """
    undone = torch.stack([torch.tensor(_undone(one)) / len(one.kinds) for one in audits.values()]).double().mean(0)
    sums = {"c": cost.sum(), "u": undone.sum(), "cc": cost @ cost, "cu": cost @ undone, "uu": undone @ undone}
    return {f"sum_{name}": float(f"{float(value):.10g}") for name, value in sums.items()}


def _undone(result: Audit) -> list[int]:
    """How many members undo each counterfactual that was found."""
    return [int(count) for count in result.undone.sum(0)]


def _seeds(family: Family) -> str:
    """The seeds of a family's members: "1000-1099", or "0" where all keep the deployed network's."""
    drawn = [retraining.init_seed for retraining in family.retrainings]
    return str(drawn[0]) if len(set(drawn)) == 1 else f"{min(drawn)}-{max(drawn)}"


# ---- the file ----


def join(parts: Sequence[str | Path], file: str | Path) -> Path:
    """One file of several, written by as many processes: of the same study, or they are not joined."""
    missing = [str(part) for part in parts if not Path(part).exists()]
    if missing or not parts:
        raise FileNotFoundError(f"no files to join: {', '.join(missing) or 'none were given'}")
    lines = [line for part in parts for line in _lines(Path(part), None)]
    names = sorted({line["study"] for line in lines})
    if len(names) > 1:
        raise ValueError(f"these files hold the studies {', '.join(names)}; give each study a file of its own")
    return write_text(Path(file), b"".join(map(_text, lines)).decode())


def read(file: str | Path, study: Study | None = None) -> list[dict[str, Any]]:
    """The flat rows of a study's file, also while it runs: one a cell and kind of change.

    Where a setting was changed in between, the newer line of a cell counts; given the ``study``, only its own cells do.
    """
    return [row for line in _newest(Path(file), study) for row in line["rows"]]


def frame(file: str | Path, study: Study | None = None) -> pd.DataFrame:
    """The same as a table."""
    return pd.DataFrame(read(file, study))


def each(file: str | Path, study: Study | None = None) -> pd.DataFrame:
    """One line a counterfactual: its cost, and for every kind of change the share of members that undo it.

    NaN where nothing was found.
    """
    parts = [_each(line) for line in _newest(Path(file), study)]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def _each(line: dict[str, Any]) -> pd.DataFrame:
    own, members = line["each"], {row["change"]: row["members"] for row in line["rows"]}
    found = np.array([letter == "1" for letter in own["found"]])

    def spread_out(values: Any) -> Any:
        """From found rows to all rows."""
        column = np.full(len(found), np.nan)
        column[found] = values
        return column

    columns = {name: spread_out(own[name]) for name in ("cost_l1", "cost_l2")}
    for kind, counts in own["undone"].items():
        columns[f"undone_{kind}"] = spread_out(np.array(counts) / members[kind])
    cell = {name: line[name] for name in ("dataset", "base_seed", "method")}
    return pd.DataFrame({**cell, "row": np.arange(len(found)), "found": found, **columns})


def _newest(path: Path, study: Study | None) -> list[dict[str, Any]]:
    if not path.exists():
        raise FileNotFoundError(f"there is no {path}; run(study, file) writes it")
    own = None if study is None else {cell.key for cell in study.cells}
    newest = {
        (line["dataset"], line["base_seed"], line["method"]): line
        for line in _lines(path, None if study is None else study.name)
        if own is None or line["cell"] in own
    }
    return list(newest.values())


def _lines(path: Path, study: str | None) -> Iterator[dict[str, Any]]:
    """The whole lines of a file; what a killed writer left of its last one is passed over."""
    *whole, _ = path.read_bytes().split(b"\n")
    for number, text in enumerate(whole, start=1):
        try:
            line = json.loads(text)
            ours = set(line) >= FIELDS
        except (ValueError, TypeError):
            ours = False
        if not ours:
            raise ValueError(f"line {number} of {path} is not a study's cell, it was changed or is not ours; remove it")
        if study is not None and line["study"] != study:
            raise ValueError(f"{path} holds study '{line['study']}', not '{study}'; give each study a file of its own")
        yield line


def _mend(path: Path) -> None:
    """Cut off what a killed writer left of its last line."""
    if path.exists():
        whole = path.read_bytes().rfind(b"\n") + 1
        if whole < path.stat().st_size:
            os.truncate(path, whole)


def _append(path: Path, line: dict[str, Any]) -> None:
    """Add a line, whole or not at all."""
    with open(path, "ab", buffering=0) as file:
        start, rest = file.tell(), memoryview(_text(line))
        try:
            while rest:
                rest = rest[file.write(rest) :]
            os.fsync(file.fileno())
        except BaseException:  # Ctrl-C and a full disk among them
            file.truncate(start)
            raise


def _text(line: dict[str, Any]) -> bytes:
    return (json.dumps(line, allow_nan=False, separators=(",", ":")) + "\n").encode()


def _in_order(study: Study, path: Path) -> None:
    """When every cell is there: the file in the study's order, without cells of settings that are no more."""
    if not path.exists():
        return
    lines = {line["cell"]: line for line in _lines(path, study.name)}
    if all(cell.key in lines for cell in study.cells):
        text = b"".join(_text(lines[cell.key]) for cell in study.cells)
        if text != path.read_bytes():
            write_text(path, text.decode())
