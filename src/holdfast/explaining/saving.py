"""An explainer on disk: its settings, schema and retrained models, and what its table and model must be.

The model and the table stay where they are. The folder knows them by a hash of the encoded rows, and by what the model
says of some of them, so that another table or model is refused. Its own files it knows by their digests: a schema or
models of another folder would give advice that nobody has asked for.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from holdfast.explaining.frames import as_pandas
from holdfast.explaining.roles import Sizes
from holdfast.families.family import Family
from holdfast.families.recipe import Recipe
from holdfast.families.store import load_family, save_family
from holdfast.tabular.encoding import Encoding
from holdfast.tabular.schema import Schema
from holdfast.utils.digests import file_digest
from holdfast.utils.files import all_or_none, as_path, make_folder, only_writer, write_text
from holdfast.utils.messages import some
from holdfast.utils.sealing import Kind, sealed, unsealed

if TYPE_CHECKING:
    from holdfast.explaining.explainer import Explainer

EXPLAINER = Kind("explainer", "explainer", format=2, unsealed=-1)
DESCRIPTION, SCHEMA, MODELS = "explainer.json", "schema.toml", "models"
OURS = re.compile(rf"{MODELS}/(manifest\.json|family(-[0-9a-f]{{20}})?\.safetensors)")  # what `save_family` writes
PLAIN = ("label", "constrained", "plausible", "scaling", "takes", "outputs")  # settings that JSON can say
ASKED = 64  # rows whose answers tell one model from another
CLOSE = 1e-3  # between the logits of one model on two machines


def save_explainer(explainer: Explainer, folder: str | Path) -> Path:
    """Write it all, the description last: until it is there, what lies there is no explainer that can be loaded.

    Over an older one, too: a description fits the files that it was written with, and no mixture.
    """
    folder = make_folder(as_path(folder, "a folder to keep the explainer in"))
    about = _described(explainer)
    with only_writer(folder / DESCRIPTION, wait=True):
        _check_room(folder)
        with all_or_none(folder) as parts:
            explainer.schema_given.save(parts / SCHEMA)
            kept = _save_models(explainer, parts / MODELS)
            files = _digests(parts)
        for name in _digests(folder).keys() - files.keys():
            (folder / name).unlink()  # a model of the explainer that was here before
        text = json.dumps(sealed(EXPLAINER, {**about, "models": kept, "files": files}), indent=1, allow_nan=False)
        write_text(folder / DESCRIPTION, text + "\n")
    return folder


def _described(explainer: Explainer) -> dict[str, Any]:
    from holdfast import __version__

    return {
        "version": __version__,
        **{name: getattr(explainer, name) for name in PLAIN},
        "want": _plain_want(explainer.want),
        "sizes": asdict(explainer.sizes),
        "recipe": _plain_recipe(explainer.model if explainer.ours else None),
        "table": table_hash(explainer.encoding, explainer.rows),
        "rows": len(explainer.rows),
        "answers": answers_of(explainer),
    }


def _check_room(folder: Path) -> None:
    """Files of the user's own are neither removed nor taken for models."""
    foreign = sorted(name for name in _digests(folder) if name != SCHEMA and not OURS.fullmatch(name))
    if foreign:
        raise ValueError(
            f"{folder} holds {some(foreign)}, which Explainer.save has not written; name another folder, or move "
            "them away"
        )


def _digests(folder: Path) -> dict[str, str]:
    """The SHA-256 of every file that belongs to an explainer, but its description; no locks, and no parts."""
    paths = [path for path in (folder / SCHEMA, *(folder / MODELS).rglob("*")) if path.is_file()]
    names = {path.relative_to(folder).as_posix(): path for path in sorted(paths)}
    return {name: file_digest(path) for name, path in names.items() if not re.search(r"(^|/)\.", name)}


def load_explainer(
    kind: type[Explainer], folder: str | Path, model: Any, table: Any, settings: dict[str, Any]
) -> Explainer:
    folder = as_path(folder, "a folder that Explainer.save has written")
    description = folder / DESCRIPTION
    if not description.is_file():
        raise FileNotFoundError(f"there is no {DESCRIPTION} in {folder}; name a folder that Explainer.save has written")
    about = unsealed(EXPLAINER, description.read_bytes(), str(description))
    _check_whole(folder, about)
    kept = {name: about[name] for name in PLAIN}
    kept |= {"want": about["want"], "sizes": Sizes(**about["sizes"]), "schema": Schema.load(folder / SCHEMA)}
    unknown = [name for name in settings if name not in {setting.name for setting in fields(kind)}]
    if unknown:
        raise TypeError(f"Explainer has no setting '{unknown[0]}'")
    recipe = about["recipe"]
    if model is None and recipe is not None:
        own_recipe: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in recipe.items()
        }
        model = Recipe(**own_recipe)
    rows = as_pandas(table, "table")
    without_models = kind(model, rows, **{**kept, **settings, "retrain": None})
    _check_same(without_models, about, folder)
    retrain = settings.get("retrain")
    if retrain is None and about["models"]:
        retrain = load_family(folder / MODELS, encoding=without_models.encoding)
    if retrain is None:
        return without_models
    return kind(model, rows, **{**kept, **settings, "retrain": retrain})


def _check_whole(folder: Path, about: dict[str, Any]) -> None:
    """Refuse files that were not saved with this description, before anything of them is used."""
    kept, there = about.get("files", {}), _digests(folder)
    differs = [
        *(f"{name} is missing" for name in kept if name not in there),
        *(f"{name} was changed" for name in kept if name in there and there[name] != kept[name]),
        *(f"{name} was added" for name in there if name not in kept),
    ]
    if differs:
        raise ValueError(
            f"{folder} is not as Explainer.save wrote it: {'; '.join(differs)}. Copy the whole folder again, or make "
            "the explainer again, with the schema that you want, and save it with Explainer.save"
        )


def table_hash(encoding: Encoding, rows: Any) -> str:
    """Of the rows as they are encoded: the same for the same numbers, whatever their types."""
    hashed = hashlib.sha256(f"{encoding.columns} {encoding.schema.classes}".encode())
    hashed.update(encoding.encode_unchecked(rows, torch.float64).numpy().tobytes())
    if encoding.schema.label in rows:
        hashed.update(encoding.labels(rows).numpy().tobytes())
    return hashed.hexdigest()


def _save_models(explainer: Explainer, folder: Path) -> bool:
    """The retrained models, where there are some; those that cannot be written down are an error that says what to
    do."""
    if explainer.retrain is None:
        return False
    family: Family = explainer.family
    try:
        save_family(family, folder)
    except ValueError as error:
        raise ValueError(
            f"the retrained models cannot be kept ({error}). Save the explainer without them, "
            "replace(explainer, retrain=None).save(folder), and give them again: "
            "Explainer.load(folder, model=..., table=..., retrain=[...])"
        ) from error
    return True


def answers_of(explainer: Explainer) -> list[list[float]]:
    """The logits of the deployed model for some rows of its table: they tell it from another model."""
    chosen = np.linspace(0, len(explainer.rows) - 1, min(len(explainer.rows), ASKED)).astype(int)
    with torch.no_grad():
        logits = explainer.deployed(explainer.encoding.encode(explainer.rows.iloc[chosen]))
    answers: list[list[float]] = logits.double().cpu().tolist()
    return answers


def _check_same(explainer: Explainer, about: dict[str, Any], folder: Path) -> None:
    if len(explainer.rows) != about["rows"] or table_hash(explainer.encoding, explainer.rows) != about["table"]:
        raise ValueError(
            f"this is not the table that {folder} was saved with: it has {len(explainer.rows)} rows, and there were "
            f"{about['rows']}; its values differ. Give the same table, or make a new Explainer"
        )
    kept, answers = (torch.tensor(each, dtype=torch.float64) for each in (about["answers"], answers_of(explainer)))
    if kept.shape != answers.shape or not torch.allclose(kept, answers, rtol=CLOSE, atol=CLOSE):
        raise ValueError(
            f"this is not the model that {folder} was saved with: it answers {len(answers)} rows of the table "
            "otherwise. Give the same model, or make a new Explainer: advice for one model is none for another"
        )


def _plain_recipe(recipe: Recipe | None) -> dict[str, Any] | None:
    if recipe is None:
        return None
    if recipe.network is not None:
        raise ValueError(
            "a recipe with a network of your own is code, and is not kept; train the network first, and give it as the "
            "model"
        )
    values = asdict(recipe)
    values.pop("network")
    return values


def _plain_want(want: Any) -> Any:
    """A class or several; one for each person belongs to the people, and is given again."""
    if isinstance(want, (set, frozenset, tuple)):
        return list(want)
    return None if hasattr(want, "items") else want
