"""Where retrained models come from: changes to retrain by, a function that trains, or models that exist."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.families.boosters import check_params
from holdfast.families.changes import seeds
from holdfast.families.family import Family
from holdfast.families.model_files import read_retrained
from holdfast.families.own_training import gather_models, retrained_network, train_by
from holdfast.families.recipe import Recipe, Retraining, counted
from holdfast.families.refitting import refit
from holdfast.families.resemblance import judged
from holdfast.models.frameworks.boosters import knows as is_booster
from holdfast.models.identity import is_estimator

if TYPE_CHECKING:
    from holdfast.explaining.explainer import Explainer

USUAL = 96  # retrained models where nobody says how many
SOURCES = (
    "retrain=hf.seeds(96) or other changes (an estimator is fitted again; a network needs recipe=hf.Recipe(...)), "
    "retrain=function (called as function(rows, seed), returns a model), or retrain=[model, model, ...] (models that "
    "you have); on the command line, --retrain seeds:96 or --retrained FILE"
)


def check_source(retrain: Any, model: Any, recipe: Any, params: Any) -> None:
    """Raise where nothing can be retrained by what was given: before any long work."""
    can_refit = is_estimator(model) or is_booster(model)
    if _are_changes(retrain) and recipe is None and can_refit:
        check_params(model, params)
    elif params is not None and retrain is not None:
        raise ValueError(
            f"params states how a booster was trained, for changes such as retrain=hf.seeds(96), got {retrain!r:.80} "
            f"for a {type(model).__name__}; leave params out"
        )
    if retrain is None or isinstance(retrain, (Family, str, Path)) or _is_function(retrain):
        return
    if not isinstance(retrain, Sequence) or not len(retrain):
        raise TypeError(f"retrain is {retrain!r}, which gives no retrained models; the sources are {SOURCES}")
    if _are_changes(retrain) and recipe is None and not can_refit:
        raise TypeError(
            f"retrain names changes ({counted([change.kind for change in retrain])}), but a {type(model).__name__} "
            "does not say how it is trained. Give recipe=hf.Recipe(network=module, epochs=..., batch=...), which "
            "trains it anew on the encoded rows; or retrain=function, called as function(rows, seed), that returns a "
            "model; or retrain=[model, model, ...], retrained models that you have"
        )


def retrained(explainer: Explainer) -> Family:
    """All the retrained models that its source yields."""
    retrain = explainer.retrain
    if isinstance(retrain, Family):
        return retrain
    if files := _files(retrain):
        return read_retrained(files, explainer.encoding)
    if _is_function(retrain):
        return _by_function(explainer)
    if _are_changes(retrain):
        return _by_changes(explainer)
    return gather_models(list(retrain), explainer.encoding, explainer.deployed)


def told_of(explainer: Explainer, family: Family) -> str:
    """Where the retrained models come from, in words, and what is known of how they were made."""
    by_kind = ", ".join(f"{count} of kind '{kind}'" for kind, count in Counter(family.kinds).items())
    parts = [f"{_maker(explainer, family)}: {by_kind}"]
    if family.failures:
        parts.append(f"{len(family.failures)} more could not be trained")
    if family.told:
        parts.append(f"how the deployed model was trained is known so: {family.told}")
    if family.surrogates:
        parts.append(f"they are surrogates, since {family.surrogates}")
    return "; ".join(parts)


def _maker(explainer: Explainer, family: Family) -> str:
    """Who made them, and how."""
    retrain, recipe = explainer.retrain, explainer.training_recipe
    if isinstance(retrain, Family):
        return _maker_of(family)
    if files := _files(retrain):
        return f"read from '{files[0]}'" if len(files) == 1 else "read from files of the user"
    if _is_function(retrain):
        function = retrain[0] if isinstance(retrain, tuple) else retrain
        return f"trained by the user's function '{getattr(function, '__name__', type(function).__name__)}'"
    if not _are_changes(retrain):
        return "given by the user"
    if isinstance(recipe, Recipe):
        like = "as it trained the deployed one" if explainer.ours else "by the recipe that the user gave"
        return f"networks trained by holdfast, {like}"
    if recipe is not None:
        return f"fitted by holdfast, from a {type(recipe).__name__} that the user gave"
    return "fitted again by holdfast, with the settings of the deployed model"


def _maker_of(family: Family) -> str:
    """Who made a family that exists, as far as it tells."""
    if family.refitted:
        return "fitted again by holdfast beforehand"
    return "given by the user" if family.external else "networks trained by holdfast beforehand"


def _by_changes(explainer: Explainer) -> Family:
    settings: dict[str, Any] = {"store": explainer.store, "workers": explainer.workers, "progress": explainer.progress}
    deployed, table, encoding = explainer.deployed, explainer.rows, explainer.encoding
    changes, recipe = list(explainer.retrain), explainer.training_recipe
    if isinstance(recipe, Recipe):
        return retrained_network(deployed, recipe, encoding, table, changes, **settings)
    if recipe is None:
        return refit(deployed, table, changes, params=explainer.params, **settings)
    family = refit(recipe, table, changes, encoding=encoding, **settings)  # an estimator that is not fitted
    return judged(family, deployed, encoding, table)


def _by_function(explainer: Explainer) -> Family:
    """A function alone gets new seeds; with changes beside it, the rows and seeds of those."""
    source = explainer.retrain
    settings: dict[str, Any] = {"workers": explainer.workers, "progress": explainer.progress}
    function, changes = source if isinstance(source, tuple) else (source, seeds(USUAL))
    return train_by(function, list(changes), explainer.encoding, explainer.deployed, explainer.rows, **settings)


def _files(source: Any) -> list[str | Path]:
    """The files that a source names, or the folder; none where it is something else."""
    named = [source] if isinstance(source, (str, Path)) else source
    return list(named) if isinstance(named, Sequence) and all(isinstance(name, (str, Path)) for name in named) else []


def _is_function(source: Any) -> bool:
    """A function that trains, alone or with the changes that it is called for; models can be called too."""
    if isinstance(source, tuple) and len(source) == 2:
        return isinstance(source[0], Callable) and _are_changes(source[1])  # type: ignore[arg-type]
    return callable(source) and not isinstance(source, Sequence)


def _are_changes(source: Any) -> bool:
    several = isinstance(source, Sequence) and not isinstance(source, str) and len(source) > 0
    return several and all(isinstance(change, Retraining) for change in source)
