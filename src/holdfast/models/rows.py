"""Rows and their classes as tensors: what every function that takes some checks of them at its door."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

DTYPES = (torch.float32, torch.float64)
HINT = "encoding.encode(table) makes rows, encoding.target(label, rows) makes targets"


def check_tensor(name: str, value: Any, hint: str = HINT) -> None:
    """Raise unless the value is a tensor that holds its numbers one after another."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} must be a torch tensor, got {type(value).__name__}; {hint}")
    if value.layout != torch.strided:
        raise ValueError(f"{name} is a sparse tensor; use {name}.to_dense()")
    if value.is_meta:
        raise ValueError(f"{name} has no values: it is on the device 'meta'; make it on a real one")


def check_rows(x: Any, name: str = "x", width: int | None = None, finite: bool = True, hint: str = HINT) -> None:
    """Raise unless x is (n, d), or (n, width), of finite numbers in float32 or float64."""
    check_tensor(name, x, hint)
    columns = "d" if width is None else width
    if x.ndim != 2 or x.shape[1] < 1 or width not in (None, x.shape[1]):
        raise ValueError(
            f"expected {name} (n, {columns}), got {tuple(x.shape)}; one row for each person and as many columns as the "
            f"Encoding makes{f': for a single row, {name}[None]' if x.ndim == 1 else ''}"
        )
    check_floats(name, x)
    if finite and not x.isfinite().all():
        raise ValueError(f"{name} holds values that are not finite; fill or drop those rows")


def check_floats(name: str, x: Tensor) -> None:
    if x.dtype not in DTYPES:
        raise ValueError(
            f"{name} must be float32 or float64 floating-point numbers, got {x.dtype}; "
            f"encode the table, or use {name}.float()"
        )


def check_target(target: Any, rows: int, classes: int, name: str = "target") -> None:
    """Raise unless there is one class index from 0 to classes − 1 for each row: (n,) as int64."""
    check_tensor(name, target)
    if tuple(target.shape) != (rows,):
        raise ValueError(f"expected {name} (n,), one class for each of {rows} rows, got {tuple(target.shape)}")
    if target.dtype != torch.int64 or (rows and not 0 <= int(target.min()) <= int(target.max()) < classes):
        raise ValueError(
            f"{name}s must be class indices from 0 to {classes - 1} as int64, "
            f"got {sorted(set(target.tolist()))[:5]} as {target.dtype}; encoding.target(label, rows) makes them"
        )
