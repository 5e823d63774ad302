"""Small real things to attack, and what of them must stay the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import holdfast as hf
from holdfast.paper import results
from holdfast.paper.runner import run
from holdfast.paper.study import Study

RECIPE = hf.Recipe((8,), epochs=2, batch=16)


def rows(seed: int = 0, count: int = 40, columns: int = 4) -> tuple[Tensor, Tensor]:
    x = torch.randn(count, columns, generator=torch.Generator().manual_seed(seed))
    return x, (x.sum(1) > 0).long()


def members() -> list[hf.Retraining]:
    """Of two batch sizes, so that they are trained in two chunks."""
    return [*hf.seeds(2), *(hf.Retraining(init_seed=seed, settings=(("batch", 8),), kind="small") for seed in (7, 8))]


def family(seed: int = 0, store: Path | None = None, workers: int = 1) -> hf.Family:
    x, y = rows(seed)
    return hf.train(x, y, RECIPE, members(), held_out=rows(seed + 100), store=store, workers=workers)


def counterfactuals(seed: int = 0) -> hf.Counterfactuals:
    x, y = rows(seed)
    model = hf.train(x, y, RECIPE, [hf.Retraining()])[0]
    return hf.PGD(radius=3.0, levels=2, steps=5)(model, x[:12], hf.other_class(model, x[:12]), hf.Space.free(x))


def audit(seed: int = 0) -> hf.Audit:
    return hf.audit(counterfactuals(seed), family(seed))


def study() -> Study:
    quick = {name: hf.PGD(radius=radius, levels=1, steps=2) for name, radius in {"near": 1.0, "far": 3.0}.items()}
    return Study(
        "tiny",
        datasets=("german",),
        methods=tuple(quick.items()),
        changes=(("seeds", 2),),
        rows=4,
        recipes={"german": hf.Recipe((8,), epochs=1, batch=64)},
    )


def run_study(file: Path, store: Path, only: tuple[str, ...] = ()) -> Path:
    return run(study(), file, store=store, workers=1, only=only)


def schema() -> hf.Schema:
    features = (
        hf.Feature("income", "real", lower=0, upper=200.5, direction="rise"),
        hf.Feature("age", "integer", mutable=False),
        hf.Feature("job", "categorical", levels=("clerk", "nurse", "baker")),
    )
    return hf.Schema(features, label="outcome", classes=("no", "yes"))


# ---- what must stay the same ----


def family_parts(family: hf.Family) -> dict[str, Any]:
    states = [{name: (tuple(t.shape), t.numpy().tobytes()) for name, t in one.state.items()} for one in family.stacks]
    names = ("kinds", "retrainings", "fingerprints", "recipe", "accuracy", "data", "places")
    return {"weights": states} | {name: getattr(family, name) for name in names}


def audit_parts(audit: hf.Audit) -> dict[str, Any]:
    answer = audit.counterfactuals
    tensors = {name: getattr(answer, name) for name in ("origin", "point", "target", "found", "before")}
    tensors |= {"predictions": audit.predictions, "members' before": audit.before}
    own = {name: None if t is None else (t.dtype, tuple(t.shape), t.numpy().tobytes()) for name, t in tensors.items()}
    named = {"seen": answer.seen, "classes": answer.classes}
    return own | named | {"kinds": audit.kinds, "summary": audit.summary().to_json()}


def study_parts(file: Path, seconds: bool = False) -> dict[str, Any]:
    """Every row and every counterfactual; the seconds that it took only where asked for."""
    found = [{name: row[name] for name in row if seconds or name != "seconds"} for row in results.read(file)]
    return {"rows": json.dumps(found), "each": results.each(file).to_json()}


def difference(one: dict[str, Any], other: dict[str, Any]) -> str:
    """What differs, by its name; nothing if they are the same."""
    return ", ".join(name for name in one if one[name] != other.get(name))
