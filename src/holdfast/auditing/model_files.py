"""The deployed model and the retrained ones, as the commands get them: from files, refitted, or trained by holdfast."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from holdfast.families.external_models import read_perceptron
from holdfast.families.family import Family
from holdfast.families.recipe import Recipe, Retraining
from holdfast.families.refitting import refit
from holdfast.families.store import load_family
from holdfast.families.training import train
from holdfast.models.files.reading import FORMATS, PROGRAMS, read_model
from holdfast.models.model import Model
from holdfast.tabular.encoding import Encoding

OURS = "a network that holdfast trained"
OURS_RETRAINED = "networks that holdfast trained"
SOURCES = "name the files of retrained models (--retrained FILE, or a folder), or let holdfast train networks (--train)"


@dataclass(frozen=True, eq=False)
class Models:
    """The deployed model, and the retrained ones: here already, or still to be made by `retrained_on`."""

    deployed: Model
    name: str  # of the deployed model: its file, or that it is ours
    family: Family | None
    family_name: str  # where the retrained models come from
    recipe: Recipe | None = None  # of networks that are to be trained

    @property
    def ours(self) -> bool:
        """Whether the deployed model is a network that holdfast trained, and nobody else's."""
        return self.name == OURS

    def retrained_on(
        self,
        known: pd.DataFrame,
        encoding: Encoding,
        changes: Sequence[Retraining],
        *,
        store: str | Path | None = None,
        workers: int | None = None,
        progress: bool = False,
    ) -> Family:
        """The retrained models, made now where they are not here: it takes long, so all else should be read by now."""
        if self.family is not None:
            return self.family
        if self.recipe is not None:
            x, y = encoding.encode(known), encoding.labels(known)
            return train(x, y, self.recipe, list(changes), store=store, workers=workers, progress=progress)
        try:
            return refit(self.deployed, known, changes, store=store, workers=workers, progress=progress)
        except TypeError as error:
            raise ValueError(f"{self.name} cannot be retrained: {error}. On the command line, {SOURCES}") from error


def find_models(
    known: pd.DataFrame,
    encoding: Encoding,
    *,
    model: str | Path | None = None,
    retrained: Sequence[str | Path] = (),
    recipe: Recipe | None = None,
    retrain: bool = False,
    store: str | Path | None = None,
) -> Models:
    """The deployed ``model`` of a file or of a saved family's folder, and the ``retrained`` ones.

    With a ``recipe``, what is not given is trained by it on the rows that are ``known``. ``retrain`` says that the
    model is to be refitted: an estimator can be.
    """
    if retrained and recipe is not None:
        raise ValueError(
            "--retrained names the retrained models and --train asks for others; leave one of them out (recipe=...)"
        )
    if retrained and retrain:
        raise ValueError("--retrained names the retrained models and --retrain asks for others; leave one of them out")
    if retrained:
        family, name = read_retrained(retrained, encoding)
        if model is not None:
            return Models(read_deployed(model, encoding), str(model), family, name)
        folder = Path(retrained[0])
        if not _is_family(folder):
            raise ValueError(
                "files of models do not say which model the counterfactuals were found for; name the deployed model: "
                "--model FILE, or model=..."
            )
        return Models(read_deployed(folder, encoding), f"{folder}, kind 'base'", family, name)
    if model is None and recipe is None:
        raise ValueError(
            "there is no model: name the deployed one (--model FILE), or say that holdfast is to train a network and "
            "to use that in its place (--train)"
        )
    if model is None and recipe is not None:
        x, y = encoding.encode(known), encoding.labels(known)
        return Models(train(x, y, recipe, [Retraining()], store=store)[0], OURS, None, OURS_RETRAINED, recipe)
    deployed = read_deployed(str(model), encoding)
    if recipe is not None:
        return Models(deployed, str(model), None, f"{OURS_RETRAINED}, which are no retrainings of {model}", recipe)
    if not retrain:
        raise ValueError(
            f"there are no retrained models: say how often to retrain {model}, if it is an estimator (--retrain "
            f"seeds:96); {SOURCES}"
        )
    return Models(deployed, str(model), None, f"refits of {model}")


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
    files = sorted(
        path for path in folder.iterdir() if path.is_file() and path.suffix.lower() in (*FORMATS, *PROGRAMS)
    )
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
        return read_perceptron(path)
    return read_model(path, encoding)
