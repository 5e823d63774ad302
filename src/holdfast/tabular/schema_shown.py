"""A schema as a notebook shows it: what each feature is, what people can change, and what relates the features."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from holdfast.tabular.feature import Feature, Level
from holdfast.utils import notebook

if TYPE_CHECKING:
    from holdfast.tabular.schema import Schema

LEVELS = 8  # that are listed
WAYS = {"any": "yes", "rise": "can only rise", "fall": "can only fall"}


def as_html(schema: Schema) -> str:
    features = schema.features
    columns: dict[str, list[str]] = {
        "feature": [feature.name for feature in features],
        "kind": [feature.kind for feature in features],
        "people can change it": ["; ".join(_change(feature)) for feature in features],
        "range or levels": [_values(feature) for feature in features],
    }
    label = f"Label {schema.label}: {_listed(schema.classes)}"
    fixed = sum(not feature.mutable for feature in features)
    counts = f"{len(features)} features, of which people cannot change {fixed or 'none'}"
    relations = [notebook.sentence(f"Always true: {relation}.") for relation in schema.relations]
    return notebook.page(
        notebook.sentence(f"{label}. {counts}."), notebook.table(columns, of="features", words=True), *relations
    )


def _change(feature: Feature) -> Iterator[str]:
    if not feature.mutable:
        yield "no"
        return
    yield WAYS[feature.direction]
    if feature.step is not None:
        yield f"in steps of {feature.step:,g}"
    if feature.avoid:
        yield f"never to {_listed(feature.avoid)}"
    if feature.difficulty != 1:
        yield f"{feature.difficulty:g} times as hard as others"


def _values(feature: Feature) -> str:
    told = _range(feature) if feature.is_numeric else _listed(feature.values)
    return f"{told}; may be missing" if feature.missing else told


def _range(feature: Feature) -> str:
    if feature.ranges:
        return " or ".join(f"{low:,g}" if low == high else f"{low:,g} to {high:,g}" for low, high in feature.ranges)
    low, high = ("" if end is None else f"{end:,g}" for end in (feature.lower, feature.upper))
    if low and high:
        return f"{low} to {high}"
    if low or high:
        return f"{low} or more" if low else f"{high} or less"
    return "as in the training rows"


def _listed(levels: tuple[Level, ...]) -> str:
    told = ", ".join(map(str, levels[:LEVELS]))
    return told if len(levels) <= LEVELS else f"{told}, ... ({len(levels)} levels)"
