"""What the columns of a table mean, and what a person can change about them."""

from __future__ import annotations

import dataclasses
import difflib
import json
import math
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from numbers import Real
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import tomli_w

from holdfast.files import write_text

Level = str | int | float | bool
Kind = Literal["real", "integer", "binary", "ordinal", "categorical"]
Direction = Literal["any", "rise", "fall"]

KINDS: tuple[Kind, ...] = ("real", "integer", "binary", "ordinal", "categorical")
DIRECTIONS: tuple[Direction, ...] = ("any", "rise", "fall")
NUMERIC: tuple[Kind, ...] = ("real", "integer")


@dataclass(frozen=True)
class Feature:
    """One raw column: its kind, and what a person may do about it.

    kind        "real" or "integer" (one number), "binary" (two levels, one 0/1 column), "ordinal" (levels
                in their order, one column that counts them) or "categorical" (one column a level)
    mutable     False: no counterfactual ever changes it
    lower/upper of a number; what the training rows show when left out
    levels      what a binary, ordinal or categorical column can hold, in order
    direction   "rise" or "fall" when a person can only move it one way
    step        the grid of a number: 100 for "in hundreds"; an integer has 1 unless told otherwise
    zero_level  the level of a categorical column that is written as all zeros rather than as a column
    avoid       levels of a categorical column that some people have but no one is told to move to: "unknown"
    """

    name: str
    kind: Kind
    mutable: bool = True
    lower: float | None = None
    upper: float | None = None
    levels: tuple[Level, ...] = ()
    direction: Direction = "any"
    step: float | None = None
    zero_level: Level | None = None
    avoid: tuple[Level, ...] = ()

    def __post_init__(self) -> None:
        for problem in self._type_problems():
            raise TypeError(f"feature '{self.name}': {problem}")
        object.__setattr__(self, "levels", tuple(map(_plain, self.levels)))
        object.__setattr__(self, "avoid", tuple(map(_plain, self.avoid)))
        for field in ("lower", "upper", "step", "zero_level"):
            object.__setattr__(self, field, _plain(getattr(self, field)))
        for problem in self._problems():
            raise ValueError(f"feature '{self.name}': {problem}")

    def _type_problems(self) -> Iterable[str]:
        if not isinstance(self.mutable, bool):
            yield f"mutable is {self.mutable!r}; it must be True or False"
        for field in ("levels", "avoid"):
            value = getattr(self, field)
            if isinstance(value, str) or not isinstance(value, Iterable):
                yield f"{field} is {value!r}; give a tuple, such as ({value!r},)"
        for field in ("lower", "upper", "step"):
            value = getattr(self, field)
            if value is not None and (
                isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value)
            ):
                yield f"{field} is {value!r}; it must be a finite number, or None"

    def _problems(self) -> Iterable[str]:
        if self.kind not in KINDS:
            yield f"kind is {self.kind!r}; choose one of {', '.join(KINDS)}"
        if self.direction not in DIRECTIONS:
            yield f"direction is {self.direction!r}; choose one of {', '.join(DIRECTIONS)}"
        if self.is_numeric:
            yield from self._numeric_problems()
        else:
            yield from self._level_problems()

    def _numeric_problems(self) -> Iterable[str]:
        if self.levels or self.avoid or self.zero_level is not None:
            yield f"levels are for columns of levels, not for {self.kind!r}; use lower and upper"
        if self.lower is not None and self.upper is not None and self.lower > self.upper:
            yield f"lower {self.lower} is above upper {self.upper}; swap them"
        if self.step is not None and not self.step > 0:
            yield f"step is {self.step}; it must be above 0"
        if self.kind == "integer" and self.step is not None and self.step != int(self.step):
            yield f"step is {self.step}, which is not whole; make the feature 'real' or the step whole"

    def _level_problems(self) -> Iterable[str]:
        if self.lower is not None or self.upper is not None or self.step is not None:
            yield f"lower, upper and step are for numbers, not for {self.kind!r}; restrict levels instead"
        if len(set(self.levels)) != len(self.levels):
            yield f"levels {list(self.levels)} repeat one another; list each once"
        if self.kind == "binary" and len(self.levels) != 2:
            yield f"a binary feature has two levels, got {list(self.levels)}"
        if self.kind == "ordinal" and len(self.levels) < 2:
            yield f"an ordinal feature has at least two levels, got {list(self.levels)}"
        if self.kind == "categorical" and not self.levels:
            yield "a categorical feature needs its levels; list them in levels=(...)"
        if self.kind == "categorical" and self.direction != "any":
            yield "categories have no direction; make the feature 'ordinal' if its levels have an order"
        if self.zero_level is not None and self.kind != "categorical":
            yield f"zero_level is for categorical features, not for {self.kind!r}"
        if self.zero_level is not None and self.zero_level in self.levels:
            yield f"zero_level {self.zero_level!r} stands among levels too; take it out of levels"
        if self.avoid and (self.kind != "categorical" or not set(self.avoid) <= set(self.values)):
            yield f"avoid {list(self.avoid)} must be levels of a categorical feature, here of {list(self.values)}"
        if self.avoid and set(self.avoid) == set(self.values):
            yield "avoid leaves no level to move to; set mutable=False instead"

    @property
    def is_numeric(self) -> bool:
        return self.kind in NUMERIC

    @property
    def width(self) -> int:
        """How many encoded columns it takes."""
        return len(self.levels) if self.kind == "categorical" else 1

    @property
    def values(self) -> tuple[Level, ...]:
        """Every level the raw column may hold, the one written as zeros included."""
        return self.levels if self.zero_level is None else (*self.levels, self.zero_level)

    @property
    def grid(self) -> float | None:
        """The step between neighbouring values in raw units; None for a free real number."""
        if self.kind == "real":
            return self.step
        return None if self.kind == "categorical" else float(self.step or 1)


@dataclass(frozen=True)
class Schema:
    """The features of a table in their order, its label column, and the classes in theirs."""

    features: tuple[Feature, ...]
    label: str
    classes: tuple[Level, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", tuple(self.features))
        object.__setattr__(self, "classes", tuple(self.classes))
        repeated = _repeated(self.names)
        if not self.features:
            raise ValueError("a schema needs at least one feature")
        if repeated:
            raise ValueError(f"features {repeated} are listed twice; keep one of each")
        if self.label in self.names:
            raise ValueError(f"'{self.label}' is both the label and a feature; drop the feature")
        if len(set(self.classes)) < 2 or _repeated(self.classes):
            raise ValueError(f"a schema needs two or more different classes, got {list(self.classes)}")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(feature.name for feature in self.features)

    @property
    def width(self) -> int:
        """How many encoded columns the features take together."""
        return sum(feature.width for feature in self.features)

    def __str__(self) -> str:
        """A line a feature, to look over."""
        lines = [f"label {self.label}: {', '.join(map(str, self.classes))}"]
        for feature in self.features:
            settings = {k: v for k, v in _compact(feature).items() if k not in ("name", "kind")}
            lines.append(
                f"{feature.name} ({feature.kind}) {', '.join(f'{k}={v}' for k, v in settings.items())}".rstrip()
            )
        return "\n  ".join(lines)

    def __getitem__(self, name: str) -> Feature:
        for feature in self.features:
            if feature.name == name:
                return feature
        raise KeyError(f"no feature '{name}'{_did_you_mean(name, self.names)}")

    def revise(self, *names: str, **changes: Any) -> Schema:
        """The same schema with other settings for some features: ``schema.revise("age", mutable=False)``."""
        if not names or not all(isinstance(name, str) for name in names):
            raise TypeError(f'name the features one by one, revise("age", "sex", mutable=False); got {names}')
        unknown = [name for name in changes if name not in _SETTINGS]
        if unknown:
            raise TypeError(
                f"no setting '{unknown[0]}'{_did_you_mean(unknown[0], _SETTINGS)}; there are {', '.join(_SETTINGS)}"
            )
        revised = {name: dataclasses.replace(self[name], **changes) for name in names}
        features = tuple(revised.get(feature.name, feature) for feature in self.features)
        return dataclasses.replace(self, features=features)

    @classmethod
    def infer(cls, table: pd.DataFrame, label: str) -> Schema:
        """Read a schema off a table. Look it over: no table says what a person can change.

        Text and unordered categories become categorical, ordered categories ordinal, two-valued columns
        binary, whole numbers integer (also when kept as floats) and other numbers real. Everything starts out
        mutable. The classes are the label's values in sorted order.
        """
        if not isinstance(label, str):
            raise TypeError(f"label must be the name of a column, got {type(label).__name__}; pass label='...'")
        _check_table(table)
        _check_columns(table, (label,))
        names = [name for name in table.columns if name != label]
        classes, *features = _all(
            partial(_classes_of, table[label], label), *(partial(_infer_feature, table[name], name) for name in names)
        )
        return cls(tuple(features), label, classes)

    def check(self, table: pd.DataFrame, labelled: bool = False) -> None:
        """Raise a ValueError that names the column, shows the values and says what to do, or return."""
        _check_table(table)
        _check_columns(table, (*self.names, self.label) if labelled else self.names)
        _all(
            *(partial(_check_feature, table[feature.name], feature) for feature in self.features),
            *([partial(_check_label, table[self.label], self.label, self.classes)] if labelled else []),
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "label": self.label,
            "classes": list(self.classes),
            "features": [_compact(feature) for feature in self.features],
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Schema:
        try:
            features = tuple(Feature(**item) for item in values["features"])
            return cls(features, values["label"], tuple(values["classes"]))
        except (KeyError, TypeError) as error:
            raise ValueError(
                f"this does not read as a schema ({error}); it needs 'label', 'classes' and a list of 'features', "
                f"each with 'name', 'kind' and, where wanted, {', '.join(_OPTIONAL)}"
            ) from error

    def save(self, path: str | Path) -> Path:
        """Write as TOML, or as JSON when the name ends in .json."""
        path = Path(path)
        text = json.dumps(self.to_dict(), indent=2) if path.suffix == ".json" else tomli_w.dumps(self.to_dict())
        return write_text(path, text)

    @classmethod
    def load(cls, path: str | Path) -> Schema:
        path = Path(path)
        text = path.read_text(encoding="utf-8")
        try:
            return cls.from_dict(json.loads(text) if path.suffix == ".json" else tomllib.loads(text))
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error


_SETTINGS = tuple(field.name for field in dataclasses.fields(Feature) if field.name != "name")
_OPTIONAL = tuple(field.name for field in dataclasses.fields(Feature) if field.default is not dataclasses.MISSING)


def _compact(feature: Feature) -> dict[str, Any]:
    """Only what differs from the defaults: TOML has no null, and short files get read."""
    item: dict[str, Any] = {"name": feature.name, "kind": feature.kind}
    for field in dataclasses.fields(feature):
        value = getattr(feature, field.name)
        if field.name in _OPTIONAL and value != field.default:
            item[field.name] = list(value) if isinstance(value, tuple) else value
    return item


def _infer_feature(column: pd.Series[Any], name: str) -> Feature:
    _check_missing(column, name)
    if isinstance(column.dtype, pd.CategoricalDtype) and column.dtype.ordered:
        return Feature(name, "ordinal", levels=tuple(_plain(level) for level in column.dtype.categories))
    if column.nunique() == 2:
        return Feature(name, "binary", levels=_levels_of(column))
    if pd.api.types.is_bool_dtype(column) or not pd.api.types.is_numeric_dtype(column):
        return Feature(name, "categorical", levels=_inferred_categories(column, name))
    _check_finite(column, name)
    return Feature(name, "integer" if (column == column.round()).all() else "real")


def _inferred_categories(column: pd.Series[Any], name: str) -> tuple[Level, ...]:
    if pd.api.types.is_datetime64_any_dtype(column) or pd.api.types.is_timedelta64_dtype(column):
        raise ValueError(f"column '{name}' holds times ({column.dtype}); turn it into a number, such as days, first")
    levels = _levels_of(column)
    if len(column) >= 20 and len(levels) > len(column) // 2:
        raise ValueError(
            f"column '{name}' has {len(levels)} different values in {len(column)} rows, {some(levels)}: "
            "that looks like an identifier or numbers kept as text; drop it, or convert it with pd.to_numeric"
        )
    return levels


def _classes_of(column: pd.Series[Any], label: str) -> tuple[Level, ...]:
    _check_missing(column, label)
    classes = _levels_of(column)
    if len(classes) > 20 and len(classes) > len(column) // 10:
        raise ValueError(
            f"label '{label}' has {len(classes)} different values in {len(column)} rows, {some(classes)}: that looks "
            "like a number or an identifier; name a column of classes, or cut it into a few with pd.cut"
        )
    return classes


def _levels_of(column: pd.Series[Any]) -> tuple[Level, ...]:
    values = [_plain(value) for value in column.unique()]
    for value in values:
        if not isinstance(value, (str, int, float, bool)):
            raise ValueError(
                f"column '{column.name}' holds {value!r} ({type(value).__name__}); convert it to text or numbers"
            )
    return tuple(sorted(values, key=lambda value: (isinstance(value, str), value)))


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _all(*steps: Callable[[], Any]) -> list[Any]:
    """Take every step and tell all that went wrong at once: nobody wants to mend a table column by column."""
    results, problems = [], []
    for step in steps:
        try:
            results.append(step())
        except ValueError as error:
            problems.append(str(error))
    if problems:
        raise ValueError("\n".join(problems))
    return results


def _check_table(table: pd.DataFrame) -> None:
    if not isinstance(table, pd.DataFrame):
        raise TypeError(f"expected a pandas DataFrame, got {type(table).__name__}; wrap it with pd.DataFrame(...)")
    unnamed = [name for name in table.columns if not isinstance(name, str)]
    if unnamed:
        raise ValueError(
            f"columns {some(unnamed)} have names that are not text; rename them, for example with "
            "table.columns = table.columns.astype(str)"
        )
    repeated = _repeated(table.columns)
    if repeated:
        raise ValueError(f"columns {repeated} appear more than once; rename or drop the copies")
    if table.empty:
        raise ValueError(f"the table is empty ({len(table)} rows, {len(table.columns)} columns); check how it was read")


def _check_columns(table: pd.DataFrame, names: Iterable[str]) -> None:
    missing = [name for name in names if name not in table.columns]
    if missing:
        hints = "".join(_did_you_mean(name, table.columns) for name in missing[:1])
        raise ValueError(f"the table lacks columns {missing}{hints}; it has {some(list(table.columns), 12)}")


def _check_feature(column: pd.Series[Any], feature: Feature) -> None:
    _check_missing(column, feature.name)
    if not feature.is_numeric:
        return _check_levels(column, feature.name, feature.values, f'revise("{feature.name}", levels=...)')
    if not pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column):
        raise ValueError(
            f"column '{feature.name}' should hold numbers but is {column.dtype}, {some(list(column.unique()))}; "
            "convert it with pd.to_numeric, or make it categorical in the schema"
        )
    _check_finite(column, feature.name)
    if feature.kind == "integer":
        broken = column[column != column.round()]
        if len(broken):
            raise ValueError(
                f"column '{feature.name}' should hold whole numbers but has {some(list(broken))}; "
                "round it, or make the feature 'real'"
            )


def _check_label(column: pd.Series[Any], label: str, classes: tuple[Level, ...]) -> None:
    _check_missing(column, label)
    _check_levels(column, label, classes, "Schema(classes=...)")


def _check_missing(column: pd.Series[Any], name: str) -> None:
    missing = column.isna()
    if missing.any():
        rows = some(list(column.index[missing]))
        raise ValueError(
            f"column '{name}' has {int(missing.sum())} missing values (rows {rows}); "
            "fill them or drop those rows; a column of levels may have 'missing' as one"
        )


def _check_finite(column: pd.Series[Any], name: str) -> None:
    broken = column[~np.isfinite(column.to_numpy(dtype=np.float64))]
    if len(broken):
        raise ValueError(f"column '{name}' has values that are not finite: {some(list(broken))}; replace or drop them")


def _check_levels(column: pd.Series[Any], name: str, levels: tuple[Level, ...], place: str) -> None:
    extra = sorted({_plain(value) for value in column.unique()} - set(levels), key=repr)
    if extra:
        raise ValueError(
            f"column '{name}' has levels {some(extra)} that the schema does not list; "
            f"it lists {some(list(levels), 12)}; add them with {place} or drop those rows"
        )


def _repeated(names: Iterable[Any]) -> list[Any]:
    seen: set[Any] = set()
    return sorted({name for name in names if name in seen or seen.add(name)}, key=str)  # type: ignore[func-returns-value]


def _did_you_mean(name: Any, names: Iterable[Any]) -> str:
    close = difflib.get_close_matches(str(name), [str(known) for known in names], n=1)
    return f" (did you mean '{close[0]}'?)" if close else ""


def some(values: Iterable[Any], most: int = 5) -> str:
    """The first few, for a message, and how many there are."""
    shown = [repr(_plain(value)) for value in values]
    return ", ".join(shown[:most]) + (f", ... ({len(shown)} in all)" if len(shown) > most else "")
