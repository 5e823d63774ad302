"""The deployed model and the retrained ones, as the commands get them: from files, refitted, or trained by holdfast."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from holdfast.families.boosters import check_params
from holdfast.families.family import Family
from holdfast.families.members import read_perceptron
from holdfast.families.recipe import Recipe, Retraining
from holdfast.families.refitting import refit
from holdfast.families.store import load_family
from holdfast.families.training import train
from holdfast.models.adapters.input_spec import how_to_fit
from holdfast.models.files.reading import FORMATS, PROGRAMS, read_model
from holdfast.models.model import Model
from holdfast.models.suspicions import check_class_order
from holdfast.tabular.encoding import Encoding

OURS = "a network that holdfast trained"
OURS_RETRAINED = "networks that holdfast trained"
SOURCES = "name the files of retrained models (--retrained FILE, or a folder), or let holdfast train networks (--train)"


@dataclass(frozen=True, eq=False)
class Models:
    """The deployed model and the retrained ones: read already, or made when they are first asked for."""

    known: pd.DataFrame  # the rows to train on
    encoding: Encoding
    name: str  # of the deployed model: its file, or that it is ours
    family_name: str  # where the retrained models come from
    given: Model | None = None
    family: Family | None = None
    recipe: Recipe | None = None  # of networks that holdfast is to train
    params: Mapping[str, Any] | None = None  # those of a bare booster that is to be fitted again
    store: str | Path | None = None

    @property
    def ours(self) -> bool:
        """Whether the deployed model is a network that holdfast trained, and nobody else's."""
        return self.given is None

    @cached_property
    def deployed(self) -> Model:
        return self._trained([Retraining()])[0] if self.given is None else self.given

    def retrained(self, changes: Sequence[Retraining], progress: bool = False) -> Family:
        """Those that were given, or one for each change. It takes long, so all else should be read by now."""
        if self.family is not None:
            return self.family
        if self.recipe is not None:
            return self._trained(changes, progress)
        try:
            return refit(self.deployed, self.known, changes, params=self.params, store=self.store, progress=progress)
        except TypeError as error:
            raise ValueError(f"{self.name} cannot be retrained: {error}. On the command line, {SOURCES}") from error

    def _trained(self, changes: Sequence[Retraining], progress: bool = False) -> Family:
        if self.recipe is None:
            raise ValueError(f"there is no recipe to train with; {SOURCES}")
        x, y = self.encoding.encode(self.known), self.encoding.labels(self.known)
        return train(x, y, self.recipe, list(changes), store=self.store, progress=progress)


def find_models(
    known: pd.DataFrame,
    encoding: Encoding,
    *,
    model: str | Path | None = None,
    retrained: Sequence[str | Path] = (),
    recipe: Recipe | None = None,
    retrain: bool = False,
    params: Mapping[str, Any] | None = None,
    store: str | Path | None = None,
) -> Models:
    """The deployed ``model`` of a file or of a saved family's folder, and the ``retrained`` ones.

    With a ``recipe``, what is not given is trained by it on the rows that are ``known``. ``retrain`` says that
    retrainings are asked for: of the model, if it is an estimator, or of a network by the recipe. ``params`` are those
    of a booster whose file does not hold them.
    """
    if params is not None and (retrained or recipe is not None or model is None):
        raise ValueError(
            "--params states the parameters of a booster that is fitted again; give it with --model and --retrain, and "
            "without --retrained and --train"
        )
    if retrained:
        for option, asked in {"--train": recipe is not None, "--retrain": retrain}.items():
            if asked:
                raise ValueError(
                    f"--retrained names the retrained models and {option} asks for others; give one of them"
                )
        return _from_files(known, encoding, model, retrained)
    if model is None:
        if recipe is None:
            raise ValueError(
                "there is no model: name the deployed one (--model FILE), or have holdfast train a network and use "
                "that in its place (--train)"
            )
        return Models(known, encoding, OURS, OURS_RETRAINED, recipe=recipe, store=store)
    if recipe is None and not retrain:
        raise ValueError(
            f"there are no retrained models: say how often to retrain {model}, if it is an estimator (--retrain "
            f"seeds:96); {SOURCES}"
        )
    deployed = _checked(read_deployed(model, encoding), encoding, known)
    if recipe is None and hasattr(deployed, "own"):
        check_params(deployed.own, params)
    told = f"refits of {model}" if recipe is None else f"{OURS_RETRAINED}, which are no retrainings of {model}"
    return Models(known, encoding, str(model), told, deployed, recipe=recipe, params=params, store=store)


def _from_files(
    known: pd.DataFrame, encoding: Encoding, model: str | Path | None, retrained: Sequence[str | Path]
) -> Models:
    if model is None and not _is_family(Path(retrained[0])):
        raise ValueError(
            "files of models do not say which model the counterfactuals were found for; name the deployed model: "
            "--model FILE, or model=..."
        )
    deployed = _checked(read_deployed(model or retrained[0], encoding), encoding, known)
    family, told = read_retrained(retrained, encoding)
    name = f"the member of kind 'base' of {retrained[0]}" if model is None else str(model)
    return Models(known, encoding, name, told, deployed, family)


def _checked(model: Model, encoding: Encoding, known: pd.DataFrame) -> Model:
    """The model, if its classes are in the schema's order."""
    check_class_order(model, encoding, known)
    return model


def read_deployed(path: str | Path, encoding: Encoding | None = None) -> Model:
    """The model of a file, or the member of kind 'base' of a saved family."""
    path = Path(path)
    if not path.is_dir():
        return _read(path, encoding)
    if not _is_family(path):
        raise ValueError(
            f"{path} is a folder, and no saved family (it has no manifest.json); name the deployed model's file: "
            "--model FILE, or model=..."
        )
    family = load_family(path, encoding=encoding)
    places = [place for place, kind in enumerate(family.kinds) if kind == "base"]
    if len(places) != 1:
        raise ValueError(
            f"{path} holds {len(places)} members of kind 'base', so it does not say which model the "
            "counterfactuals were found for; name the deployed model's file: --model FILE, or model=..."
        )
    return family[places[0]]


def read_retrained(paths: Sequence[str | Path], encoding: Encoding | None = None) -> tuple[Family, str]:
    """The retrained models of files, of one folder of files, or of a saved family; and what was read, in words."""
    given = [Path(path) for path in paths]
    folders = [path for path in given if path.is_dir()]
    if len(folders) > 1 or (folders and len(given) > 1):
        raise ValueError(
            f"expected one folder of a family or of models, or files of models, got {', '.join(map(str, given))}"
        )
    if not folders:
        models = Family.from_models([_read(path, encoding) for path in given])
        return models, f"{len(given)} {'file' if len(given) == 1 else 'files'}"
    (folder,) = folders
    if _is_family(folder):
        family = load_family(folder, encoding=encoding)
        others = [place for place, kind in enumerate(family.kinds) if kind != "base"]
        if not others:
            raise ValueError(f"{folder} holds no retrained models: all of its members are of kind 'base'")
        return family.chosen(others), f"{len(others)} members of {folder}"
    files = _model_files(folder)
    return Family.from_models([_read(path, encoding) for path in files]), f"{len(files)} files of {folder}"


def _is_family(folder: Path) -> bool:
    return (folder / "manifest.json").is_file()


def _model_files(folder: Path) -> list[Path]:
    """Those of a model, by their endings; those that are refused too, so that none is passed over unsaid."""
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.suffix.lower() in (*FORMATS, *PROGRAMS))
    if not files:
        raise ValueError(
            f"{folder} holds no files of models ({', '.join(FORMATS)}) and is no saved family; name another folder, or "
            "the files"
        )
    return files


def _read(path: str | Path, encoding: Encoding | None) -> Model:
    """A network of safetensors as the network it is; a file of another library as what `read_model` makes of it."""
    suffix = Path(path).suffix.lower()
    if encoding is None or suffix == ".safetensors" or suffix not in (*FORMATS, *PROGRAMS):
        network = read_perceptron(path)
        takes = network.weights[0].shape[0]
        if encoding is not None and takes != encoding.width:
            raise ValueError(f"the network of {path} takes {takes} columns, but {how_to_fit(encoding)}")
        return network
    return read_model(path, encoding)
