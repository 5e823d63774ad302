"""Whose row is it: the labels of rows, the column that two tables share, and people who are alike in everything."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from holdfast.tabular.findings import Column, called_key, is_date, key_finding
from holdfast.utils.messages import did_you_mean, some

NAME_ONE = "name the column of row labels: --index NAME, or index=..."


def row_labels(
    table: pd.DataFrame, features: Collection[str], index: str | None, what: str, larger: pd.DataFrame | None = None
) -> tuple[pd.DataFrame, str]:
    """The table with the labels of its rows as index, and one sentence that says where they come from.

    ``features`` are the columns that are no labels whatever they hold: those of the schema, and its label. ``what`` is
    how messages call the table. Without ``index``, an index of its own stays, unless it only counts the rows of a
    larger table beside a column called id; else the one column that names the rows is taken; else the rows are numbered
    from 0. A few people do not show what a column is for: one that names the rows of the ``larger`` table names theirs
    too.
    """
    if index is not None:
        return labelled_by(table, index, features, what), f"{what}: column {index!r} names the rows"
    if has_own_labels(table) and not _counts_rows(table, features):
        _check_labels(table.index, what)
        called = "its own index" if table.index.name is None else f"the index {table.index.name!r}"
        return table, f"{what}: {called} names the rows"
    column = _naming_column(table, features, what, larger)
    if column is not None:
        return labelled_by(table, column, features, what), f"{what}: column {column!r} names the rows"
    return table.reset_index(drop=True), f"{what}: no column names the rows, so they are numbered from 0"


def labelled_by(
    table: pd.DataFrame, column: str, features: Collection[str] = (), what: str = "the table", repeats: bool = False
) -> pd.DataFrame:
    """The table with one of its columns as labels; a feature stays a column too. Labels may repeat if ``repeats``."""
    if column not in table:
        if table.index.name != column:
            raise ValueError(
                f"{what}: no column {column!r} to take the labels from{did_you_mean(column, table.columns)}; it has "
                f"{some(table.columns, 12)}"
            )
        labelled = table
    else:
        labelled = table.set_index(column, drop=column not in features)
    _check_labels(labelled.index, what, repeats)
    return labelled


def has_own_labels(table: pd.DataFrame) -> bool:
    """Whether the index has a name, or is anything but 0, 1, 2, ..."""
    named = any(name is not None for name in table.index.names)
    return named or not table.index.equals(pd.RangeIndex(len(table)))


def _counts_rows(table: pd.DataFrame, features: Collection[str]) -> bool:
    """Whether the index is what pandas leaves of a part of a table, such as table[table.age < 30], and a column surely
    names the rows: then advice by the numbers of the index would be taken for advice by that column."""
    if table.index.name is not None or not pd.api.types.is_integer_dtype(table.index.dtype):
        return False
    return any(called_key(name, surely=True) for name in _keys(table, features))


def shared_key(
    tables: Mapping[str, pd.DataFrame], features: Collection[str], larger: pd.DataFrame | None = None
) -> str | None:
    """The column that says which rows of several tables belong together, or None.

    The first table has the people. The column is no feature, is in every table (or is its index), has a value of its
    own for each of the people, and the other tables have no others. Several columns that would match rows differently
    are an error: nobody but the user knows which is right.
    """
    names, (people, *others) = list(tables), [_with_index(table) for table in tables.values()]
    matches = {
        name: np.concatenate([pd.Index(people[name]).get_indexer(pd.Index(other[name])) for other in others])
        for name in _keys(people, features, larger)
        if all(name in other for other in others)
    }
    fitting = {name: places for name, places in matches.items() if (places >= 0).all()}
    if not fitting:
        return None
    ordered = sorted(fitting, key=lambda name: not called_key(name, surely=True))  # else in the table's order
    if any(not np.array_equal(fitting[ordered[0]], fitting[name]) for name in ordered[1:]):
        raise ValueError(
            f"columns {some(ordered)} are each in {' and '.join(names)}, and match their rows differently; {NAME_ONE}"
        )
    return ordered[0]


def matched(
    people: pd.DataFrame,
    points: pd.DataFrame,
    features: Collection[str],
    index: str | None = None,
    names: tuple[str, str] = ("people", "counterfactuals"),
    larger: pd.DataFrame | None = None,
) -> tuple[pd.DataFrame, pd.DataFrame, str]:
    """Both tables with labels that match them, and one sentence that says which: several points may be one person's.

    Without ``index``: the tables' own indexes if both have one, else the `shared_key`, else the numbers of the rows.
    A column that names the rows of one table and does not fit the other is an error: to count rows instead would judge
    a counterfactual against somebody else.
    """
    first, second = names
    key = shared_key({first: people, second: points}, features, larger) if index is None else index
    if index is None and has_own_labels(people) and has_own_labels(points):
        _check_labels(people.index, first)
        if key is not None and not _agree(people, points, key):
            raise ValueError(
                f"the indexes of {first} and {second} match their rows differently than column {key!r} does; {NAME_ONE}"
            )
        return people, points, f"{first} and {second} are matched by their indexes"
    if key is not None:
        labelled = labelled_by(people, key, features, first), labelled_by(points, key, features, second, repeats=True)
        return *labelled, f"{first} and {second} are matched by column {key!r}, which both have"
    _check_none_is_lost(people, points, features, names)
    if has_own_labels(people) and isinstance(points.index, pd.RangeIndex) and not has_own_labels(points):
        raise ValueError(
            f"the rows of {first} have labels, {some(people.index)}, and {second} do not say whose they are; give "
            f"{second} a column with these labels, and {NAME_ONE}"
        )
    return people, points, f"{first} and {second} share no column that names rows: they are matched by their numbers"


def twins(table: pd.DataFrame, features: Collection[str]) -> pd.DataFrame:
    """The rows that equal an earlier one in every feature: row, and of (whose values they are), by their labels."""
    alike = table.groupby(list(features), dropna=False, sort=False).ngroup()
    first = pd.Series(np.arange(len(table))).groupby(alike.to_numpy()).transform("min").to_numpy()
    later = np.flatnonzero(first < np.arange(len(table)))
    return pd.DataFrame({"row": table.index[later], "of": table.index[first[later]]})


def _naming_column(
    table: pd.DataFrame, features: Collection[str], what: str, larger: pd.DataFrame | None
) -> str | None:
    keys = list(_keys(table, features, larger))
    called = [name for name in keys if called_key(name)]
    if len(keys) > 1 and len(called) != 1:
        raise ValueError(f"{what}: each of the columns {some(called or keys)} could name the rows; {NAME_ONE}")
    if keys:
        return (called or keys)[0]
    for name in table.columns:
        if isinstance(name, str) and name not in features and called_key(name, surely=True):
            _check_almost_key(table[name], name, what)
    return None


def _check_almost_key(cells: pd.Series[Any], name: str, what: str) -> None:
    """A column called id that repeats now and then has a mistake in it; one that mostly repeats names other things."""
    known = cells.dropna()
    if _could_be_labels(known) and 2 * known.nunique() > len(cells):
        _check_labels(pd.Index(cells, name=name), what, advice=", or rename that column if it does not name the rows")


def _check_labels(labels: pd.Index[Any], what: str, repeats: bool = False, advice: str = "") -> None:
    called = "index" if labels.name is None else f"column {labels.name!r}"
    missing = np.flatnonzero(pd.isna(labels.to_frame(index=False)).any(axis=1).to_numpy())
    if len(missing):
        raise ValueError(
            f"{what}: {called} has no label in {len(missing)} of {len(labels)} rows (rows number {some(missing + 1)}); "
            f"fill them in, or name another column with --index NAME (index=...){advice}"
        )
    zeros = [label for label in labels if isinstance(label, str) and "\0" in label]
    if zeros:
        raise ValueError(
            f"{what}: {called} has labels with zero characters, {some(zeros)}, which no CSV file can hold; remove them"
        )
    twice = labels[labels.duplicated()].unique()
    if len(twice) and not repeats:
        raise ValueError(
            f"{what}: {called} has labels that stand for several rows, {some(twice)}; each row needs its own: delete "
            f"the copies, or name another column with --index NAME (index=...){advice}"
        )


def _keys(table: pd.DataFrame, features: Collection[str], larger: pd.DataFrame | None = None) -> Iterator[str]:
    """The columns that could name the rows: no features, unique, without gaps, and text or called or counted so, here
    or in a larger table."""
    known = set(features)
    return (
        name
        for name in table.columns
        if isinstance(name, str) and name not in known and _is_key(table[name], name, larger)
    )


def _is_key(cells: pd.Series[Any], name: str, larger: pd.DataFrame | None = None) -> bool:
    if not len(cells) or cells.isna().any() or not _could_be_labels(cells) or not cells.is_unique:
        return False
    if larger is not None and name in larger and _is_key(larger[name], name):
        return True
    column = Column(name, cells)
    if not pd.api.types.is_numeric_dtype(cells):
        return not is_date(column)
    return called_key(name) or key_finding(column, whole=True) is not None


def _could_be_labels(cells: pd.Series[Any]) -> bool:
    """Text or whole numbers: neither fractions, truth values and times, nor lists and the like."""
    if isinstance(cells.dtype, pd.CategoricalDtype):
        cells = cells.cat.categories.to_series()
    kind = pd.api.types.infer_dtype(cells, skipna=False)
    return kind in ("string", "integer") or (kind == "floating" and bool((cells == cells.round()).all()))


def _with_index(table: pd.DataFrame) -> pd.DataFrame:
    """The table with its index as a column beside the others, if it has a name that no other has."""
    name = table.index.name
    return table.reset_index() if name is not None and name not in table else table


def _agree(people: pd.DataFrame, points: pd.DataFrame, key: str) -> bool:
    """Whether the indexes match the same rows as a column does."""
    of_people, of_points = (pd.Index(_with_index(table)[key]) for table in (people, points))
    return np.array_equal(people.index.get_indexer(points.index), of_people.get_indexer(of_points))


def _check_none_is_lost(
    people: pd.DataFrame, points: pd.DataFrame, features: Collection[str], names: tuple[str, str]
) -> None:
    """Raise where the points say whose they are, and the people do not know it."""
    known, claimed = _with_index(people), _with_index(points)
    called = [name for name in claimed if isinstance(name, str) and called_key(name) and name not in set(features)]
    for name in called:
        if name not in known:
            if not called_key(name, surely=True):
                continue
            why = f"{names[0]} have none"
        elif not claimed[name].isin(known[name]).all():
            strange = claimed[name][~claimed[name].isin(known[name])].unique()
            why = f"{names[0]} do not have its values {some(strange)} ({claimed[name].dtype} and {known[name].dtype})"
        else:
            why = f"it repeats or is empty in some rows of {names[0]}"
        raise ValueError(
            f"{names[1]} have a column {name!r}, which seems to say whose they are, but {why}; correct the one or the "
            f"other, or {NAME_ONE}; or delete it if {names[1]} are in the order of {names[0]}"
        )
