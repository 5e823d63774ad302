"""What the columns of a table mean, and what a person can change about them.

Loads without pandas: a schema is read, written and listed where no table is at hand.
"""

from __future__ import annotations

import dataclasses
import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tomli_w

from holdfast.tabular.feature import LEVELS_ARE, Feature, Level, as_tuple, is_level, shown
from holdfast.tabular.phrases import phrases_to_dict
from holdfast.tabular.relations import (
    Determines,
    Relation,
    check_keys,
    check_relations,
    relation_from_dict,
    relation_to_dict,
)
from holdfast.utils import notebook
from holdfast.utils.files import as_path, write_text
from holdfast.utils.messages import did_you_mean, plain, repeated

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Schema:
    """What the columns of a table mean, and what a person can change about them.

    `Schema.infer` reads a schema off a table, and `Schema.revise` adds what no table says. A schema can also be written
    in a file (`Schema.load`), or built from `Feature` values.

    Args:
        features: the columns in their order, without the label
        label: the name of the column that holds the classes
        classes: the values of that column, in the order of a model's scores
        relations: what must stay true when several features change: `Determines`, `Implies`, `Exclusive`, `Ordered`,
            `Sums`, `Follows`

    Examples:
        >>> import holdfast as hf
        >>> import pandas as pd
        >>> table = pd.DataFrame({"age": [25, 40, 58], "savings": [0, 500, 2000]})
        >>> table["approved"] = ["no", "no", "yes"]
        >>> schema = hf.Schema.infer(table, label="approved")
        >>> schema = schema.revise("age", mutable=False)
        >>> schema = schema.revise("savings", direction="rise", step=100)
        >>> print(schema)
        label approved: no, yes
          age (integer) mutable=False
          savings (integer) direction=rise, step=100
        >>> path = schema.save("schema.toml")
        >>> hf.Schema.load("schema.toml") == schema
        True

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 2, names features that cannot be changed; its
    own searches may change every feature. The constraints are those of
    [Ustun et al. 2019](https://arxiv.org/abs/1809.06514).
    """

    features: tuple[Feature, ...]
    label: str
    classes: tuple[Level, ...]
    relations: tuple[Relation, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", _features(self.features))
        if not isinstance(self.label, str):
            raise TypeError(f"label must be the name of a column, got {shown(self.label)} ({_kind(self.label)})")
        object.__setattr__(self, "classes", _classes(self.classes))
        twice = repeated(self.names)
        if not self.features:
            raise ValueError(f"a schema needs at least one feature beside its label '{self.label}'")
        if twice:
            raise ValueError(f"features {twice} are listed twice; keep one of each")
        if self.label in self.names:
            raise ValueError(f"'{self.label}' is both the label and a feature; drop the feature")
        if len(set(self.classes)) < 2 or repeated(self.classes):
            raise ValueError(
                f"label '{self.label}': a schema needs two or more different classes, got {list(self.classes)}"
            )
        by_name = {feature.name: feature for feature in self.features}
        object.__setattr__(self, "relations", check_relations(self.relations, by_name))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the features, in their order."""
        return tuple(feature.name for feature in self.features)

    @property
    def width(self) -> int:
        """How many encoded columns the features take together."""
        return sum(feature.width for feature in self.features)

    def __str__(self) -> str:
        """One line per feature and per relation, to look over: without the words for letters."""
        features = [f"{feature.name} ({feature.kind}) {_settings_of(feature)}".rstrip() for feature in self.features]
        relations = [f"relation: {relation}" for relation in self.relations]
        return "\n  ".join([f"label {self.label}: {', '.join(map(str, self.classes))}", *features, *relations])

    def _repr_html_(self) -> str:
        columns: dict[str, list[str]] = {
            "feature": [feature.name for feature in self.features],
            "kind": [feature.kind for feature in self.features],
            "settings": [_settings_of(feature) for feature in self.features],
        }
        label = notebook.sentence(f"Label {self.label}: {', '.join(map(str, self.classes))}.")
        relations = [notebook.sentence(f"Always true: {relation}.") for relation in self.relations]
        return notebook.page(label, notebook.table(columns, of="features", words=True), *relations)

    def __getitem__(self, name: str) -> Feature:
        for feature in self.features:
            if feature.name == name:
                return feature
        raise KeyError(f"no feature '{name}'{did_you_mean(name, self.names)}")

    def revise(self, *names: str, **changes: Any) -> Schema:
        """The same schema with other settings for some features: ``schema.revise("age", mutable=False)``."""
        if not names or not all(isinstance(name, str) for name in names):
            raise TypeError(f'name the features one by one, revise("age", "sex", mutable=False); got {names}')
        unknown = [name for name in changes if name not in _SETTINGS]
        if unknown:
            raise TypeError(
                f"no setting '{unknown[0]}'{did_you_mean(unknown[0], _SETTINGS)}; there are {', '.join(_SETTINGS)}"
            )
        revised = {name: self[name].revised(**changes) for name in names}
        features = tuple(revised.get(feature.name, feature) for feature in self.features)
        return dataclasses.replace(self, features=features)

    def relate(self, *relations: Relation) -> Schema:
        """The same schema with more relations: ``schema.relate(Ordered(("satisfactory", "total")))``."""
        return dataclasses.replace(self, relations=(*self.relations, *relations))

    def without(self, relation: Relation) -> Schema:
        """The same schema less one of its relations."""
        if relation not in self.relations:
            there_are = ", ".join(f"'{known}'" for known in self.relations) or "none"
            raise ValueError(
                f"the schema has no relation '{relation}' with these settings; its relations are {there_are}"
            )
        return dataclasses.replace(self, relations=tuple(known for known in self.relations if known != relation))

    def learned(self, table: pd.DataFrame) -> Schema:
        """The same schema, with the rows of every `Determines` that has none read off a table."""
        relations = tuple(
            relation.learn(table) if isinstance(relation, Determines) and not relation.rows else relation
            for relation in self.relations
        )
        return self if relations == self.relations else dataclasses.replace(self, relations=relations)

    def broken(self, table: pd.DataFrame) -> pd.DataFrame:
        """The rows of a table that break a relation: row (its label), relation and why, one line for each breach.

        A `Determines` without rows is broken by the rows that differ from what most rows with these values have.
        """
        from holdfast.tabular.breaches import breaches  # loads pandas, which a schema alone does not need

        return breaches(table, {feature.name: feature for feature in self.features}, self.relations)

    @classmethod
    def infer(cls, table: pd.DataFrame, label: str) -> Schema:
        """Read a schema off a table. Look it over: no table says what a person can change.

        Text and unordered categories become categorical, ordered categories ordinal, two-valued columns
        binary, whole numbers integer (also when kept as floats) and other numbers real. The classes are the label's
        values in sorted order. Keys and dates are left out; columns that give the label away start out
        as mutable=False, everything else as mutable. `holdfast.inspect` says why.
        """
        from holdfast.tabular.inference import infer  # loads pandas, which a schema alone does not need

        found = infer(table, label)
        return cls(found.features, label, found.classes, found.relations)

    def check(self, table: pd.DataFrame, labelled: bool = False) -> None:
        """Raise a ValueError that names the column, shows the values and says what to do, or return."""
        from holdfast.tabular.checks import check_against

        check_against(table, self, labelled)

    def to_dict(self) -> dict[str, Any]:
        """The schema as plain dictionaries, lists, texts and numbers, as a file has it."""
        return {
            "label": self.label,
            "classes": list(self.classes),
            "features": [_compact(feature) for feature in self.features],
            **({"relations": list(map(relation_to_dict, self.relations))} if self.relations else {}),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Schema:
        """The schema that `to_dict` described."""
        try:
            check_keys(values, _KEYS, (*_KEYS, "relations"))
            features = as_tuple(values["features"], "'features'", "[{name = 'age', kind = 'integer'}]")
            relations = as_tuple(
                values.get("relations", ()), "'relations'", "[{kind = 'ordered', columns = ['a', 'b']}]"
            )
            return cls(
                tuple(_feature(item, number) for number, item in enumerate(features, start=1)),
                values["label"],
                values["classes"],
                tuple(relation_from_dict(item, number) for number, item in enumerate(relations, start=1)),
            )
        except TypeError as error:
            raise ValueError(
                f"this is not a valid schema ({error}); it needs 'label', 'classes' and a list of 'features', "
                f"each with 'name', 'kind' and, where wanted, {', '.join(_OPTIONAL)}; it may have a list of 'relations'"
            ) from error

    def save(self, path: str | Path) -> Path:
        """Write as TOML, or as JSON when the name ends in .json."""
        path = as_path(path, "a schema's file, .toml or .json")
        text = json.dumps(self.to_dict(), indent=2) if path.suffix == ".json" else tomli_w.dumps(self.to_dict())
        return write_text(path, text)

    @classmethod
    def load(cls, path: str | Path) -> Schema:
        """Read what `save` wrote, or what somebody wrote by hand: TOML, or JSON when the name ends in .json."""
        path = as_path(path, "a schema's file, .toml or .json")
        if path.is_dir():
            raise ValueError(f"{path} is a folder; name the schema's file in it")
        if not path.exists():
            raise FileNotFoundError(f"there is no file {path}; check the name and the folder")
        try:
            text = path.read_text(encoding="utf-8-sig")
            return cls.from_dict(json.loads(text) if path.suffix == ".json" else tomllib.loads(text))
        except UnicodeDecodeError as error:
            raise ValueError(f"{path} is not text in UTF-8 ({error}); save it as UTF-8") from error
        except RecursionError as error:
            raise ValueError(f"{path}: this is not a valid schema: lists lie within lists too deep to read") from error
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error


_SETTINGS = tuple(field.name for field in dataclasses.fields(Feature) if field.name != "name")
_OPTIONAL = tuple(field.name for field in dataclasses.fields(Feature) if field.default is not dataclasses.MISSING)
_KEYS = ("label", "classes", "features")


def _features(given: Iterable[Feature]) -> tuple[Feature, ...]:
    features = as_tuple(given, "features", "(Feature('age', 'integer'),)")
    for number, feature in enumerate(features, start=1):
        if not isinstance(feature, Feature):
            raise TypeError(
                f"feature number {number} is {shown(feature)} ({_kind(feature)}); expected Feature(name, kind)"
            )
    return features


def _classes(given: Iterable[Level]) -> tuple[Level, ...]:
    classes = tuple(map(plain, as_tuple(given, "classes", "('no', 'yes')")))
    for value in classes:
        if not is_level(value):
            raise TypeError(f"classes has {shown(value)}; {LEVELS_ARE}")
    return classes


def _feature(item: Any, number: int) -> Feature:
    """A feature as a file says it; what is wrong with it comes with its place and name."""
    called = f" {item['name']!r}" if isinstance(item, Mapping) and isinstance(item.get("name"), str) else ""
    try:
        check_keys(item, ("name", "kind"), ("name", *_SETTINGS))
    except TypeError as error:
        raise TypeError(f"feature number {number}{called}: {error}") from error
    return Feature(**item)


def _kind(value: object) -> str:
    return type(value).__name__


def _compact(feature: Feature) -> dict[str, Any]:
    """Only what differs from the defaults: TOML has no null, and short files get read."""
    item: dict[str, Any] = {"name": feature.name, "kind": feature.kind}
    for field in dataclasses.fields(feature):
        value = getattr(feature, field.name)
        if field.name in _OPTIONAL and value != field.default:
            item[field.name] = phrases_to_dict(value) if field.name == "phrase" else _as_lists(value)
    return item


def _settings_of(feature: Feature) -> str:
    """In words, without those for letters."""
    settings = {key: value for key, value in _compact(feature).items() if key not in ("name", "kind", "phrase")}
    return ", ".join(f"{key}={value}" for key, value in settings.items())


def _as_lists(value: Any) -> Any:
    return [_as_lists(part) for part in value] if isinstance(value, tuple) else value
