"""The deployed model and the retrained ones in files: of one model, of a folder of models, or of a saved family."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from holdfast.families.family import Family
from holdfast.families.members import read_perceptron
from holdfast.families.store import load_family
from holdfast.models.adapters.input_spec import how_to_fit
from holdfast.models.files.reading import FORMATS, PROGRAMS, read_model
from holdfast.models.model import Model
from holdfast.tabular.encoding import Encoding


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
    deployed = [member for member, kind in enumerate(family.kinds) if kind == "base"]
    if len(deployed) != 1:
        raise ValueError(
            f"{path} holds {len(deployed)} members of kind 'base', so it does not say which model the "
            "counterfactuals were found for; name the deployed model's file: --model FILE, or model=..."
        )
    return family[deployed[0]]


def read_retrained(paths: Sequence[str | Path], encoding: Encoding | None = None) -> Family:
    """The retrained models of files, of one folder of files, or of a saved family."""
    given = [Path(path) for path in paths]
    folders = [path for path in given if path.is_dir()]
    if len(folders) > 1 or (folders and len(given) > 1):
        raise ValueError(
            f"expected one folder of a family or of models, or files of models, got {', '.join(map(str, given))}"
        )
    if not folders:
        return Family.from_models([_read(path, encoding) for path in given])
    (folder,) = folders
    if _is_family(folder):
        family = load_family(folder, encoding=encoding)
        others = [member for member, kind in enumerate(family.kinds) if kind != "base"]
        if not others:
            raise ValueError(f"{folder} holds no retrained models: all of its members are of kind 'base'")
        return family.chosen(others)
    return Family.from_models([_read(path, encoding) for path in _model_files(folder)])


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
