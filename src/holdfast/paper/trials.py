"""One deployed network of a study, the families that audit it, and what methods find for it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from holdfast.datasets.prepared import prepare
from holdfast.families.entries import default_store
from holdfast.families.family import Family
from holdfast.families.recipe import Retraining
from holdfast.families.training import train
from holdfast.models.merged import Groups, merged
from holdfast.models.model import Model, predict
from holdfast.paper.keys import described
from holdfast.paper.study import CHANGES, GROUPS, Study, check_study
from holdfast.search.counterfactuals import Counterfactuals, Fitted, Method, assess, other_class
from holdfast.search.pipeline import Pipeline
from holdfast.tabular.space import Space
from holdfast.utils.digests import digest


@dataclass(frozen=True, eq=False)
class Data:
    """A dataset as the study sees it."""

    name: str
    x: Tensor
    y: Tensor
    question: Tensor  # the rows to explain
    space: Space


@dataclass(frozen=True, eq=False)
class Trial:
    """One deployed network of a study, the families that audit it, and what was found for it so far.

    Attributes:
        data: the dataset's encoded rows, the rows to explain, and the space
        seed: of the deployed network
        model: the deployed network
        target: None where any other class will do
        families: by kind of change
        groups: of classes that count as the same in the families, if the model does not say so itself
        answers: what was found so far, by method

    Examples:
        >>> import holdfast as hf
        >>> from holdfast.paper.study import Study
        >>> from holdfast.paper.trials import trial
        >>> study = Study(
        ...     name="tiny",
        ...     datasets=("german",),
        ...     methods=(("pgd", hf.PGD(levels=2, steps=5)),),
        ...     changes=(("seeds", 2),),
        ...     rows=4,
        ...     recipes={"german": hf.Recipe(hidden=(4,), epochs=1)},
        ... )
        >>> one = trial(study, "german", store="families", workers=1)
        >>> found, seconds = one.answer(hf.Margin(level=0.6))
        >>> len(found), seconds > 0
        (4, True)

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 5.1, "Methodology": a base network, and the
    networks that are retrained to judge it.
    """

    data: Data
    seed: int
    model: Model
    target: Tensor | None
    families: Mapping[str, Family]
    groups: Groups | None
    answers: dict[str, tuple[Counterfactuals, float]] = field(default_factory=dict)

    def answer(self, method: Method) -> tuple[Counterfactuals, float]:
        """What a method finds, and its seconds. What several start from, as SNS does, is searched for once.

        Where any other class will do, `judged` says the same in the classes that the families have.
        """
        key = digest(described(method))
        if key not in self.answers:
            self.answers[key] = self._search(method)
        return self.answers[key]

    def _search(self, method: Method) -> tuple[Counterfactuals, float]:
        data, seconds = self.data, 0.0
        if isinstance(method, Pipeline) and method.stabilisers:
            *earlier, last = method.stabilisers
            start, seconds = self.answer(Pipeline(method.method, tuple(earlier)) if earlier else method.method)
            begin = time.perf_counter()
            if isinstance(last, Fitted):
                last = last.fit(data.x, data.y, data.space, self.seed)
            found = last(self.model, start, data.space)
        else:
            begin = time.perf_counter()
            fitted = method.fit(data.x, data.y, data.space, self.seed)
            if self.target is None:
                found = anywhere_else(fitted, self.model, data.question, data.space)
            else:
                found = fitted(self.model, data.question, self.target, data.space)
        found.found.tolist()  # a GPU works behind: wait for it
        return found, seconds + time.perf_counter() - begin

    def judged(self, answer: Counterfactuals) -> Counterfactuals:
        """The same in the families' classes."""
        if self.groups is None:
            return answer
        model = merged(self.model, self.groups)
        target = predict(model, answer.point)
        return assess(model, answer.origin, answer.point, target, self.data.space, also=answer.found)


def anywhere_else(method: Method, model: Model, x: Tensor, space: Space) -> Counterfactuals:
    """Any class but a row's own will do: all others count as one for the search, then the one it came to is the target.

    Found are the rows that left their class.
    """
    before, classes = predict(model, x), model(x[:1]).shape[1]
    point = x.clone()
    for label in sorted(set(before.tolist())):
        others = tuple(other for other in range(classes) if other != label)
        # All rows are handed over, those of other classes being there already: a method may look at them together.
        answer = method(merged(model, ((label,), others)), x, torch.ones_like(before), space)
        point = torch.where(((before == label) & answer.found)[:, None], answer.point, point)
    target = predict(model, point)
    return assess(model, x, point, target, space, also=target != before)


def data_of(study: Study, dataset: str) -> Data:
    """A dataset as the study sees it, on the study's device."""
    prepared = prepare(dataset, study.scaling(dataset), study.card(dataset).split)
    x, y, question = (part.to(study.device) for part in (*prepared.rows, prepared.question(study.rows)))
    return Data(dataset, x, y, question, Space.free(x) if study.space == "free" else prepared.encoding.space)


def trial(
    study: Study, dataset: str, base_seed: int = 0, *, store: str | Path | None = None, workers: int | None = None
) -> Trial:
    """One deployed network of a study and its families, to ask more of than the study's rows tell.

    Examples:
        >>> import holdfast as hf
        >>> from holdfast.paper.study import Study
        >>> from holdfast.paper.trials import trial
        >>> study = Study(
        ...     name="tiny",
        ...     datasets=("german",),
        ...     methods=(("pgd", hf.PGD(levels=2, steps=5)),),
        ...     changes=(("seeds", 2),),
        ...     rows=4,
        ...     recipes={"german": hf.Recipe(hidden=(4,), epochs=1)},
        ... )
        >>> one = trial(study, "german", store="families", workers=1)
        >>> {kind: len(family) for kind, family in one.families.items()}, tuple(one.data.question.shape)
        ({'seeds': 2}, (4, 61))

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 5.1, "Methodology": a base network, and the
    networks that are retrained to judge it.
    """
    check_study(study)
    if dataset not in study.datasets or base_seed not in study.base_seeds:
        raise ValueError(
            f"study '{study.name}' has no dataset '{dataset}' with base seed {base_seed}; it has "
            f"{', '.join(study.datasets)} with {', '.join(map(str, study.base_seeds))}"
        )
    return start_trial(study, data_of(study, dataset), base_seed, default_store() if store is None else store, workers)


def start_trial(study: Study, data: Data, seed: int, store: str | Path, workers: int | None) -> Trial:
    recipe, base = study.recipe(data.name), Retraining(init_seed=seed, order_seed=seed)

    def trained(members: list[Retraining]) -> Family:
        return train(data.x, data.y, recipe, members, store=store, workers=workers)

    model: Model = trained([base])[0]
    # One family per kind, each by itself in the store: the one of new seeds serves every deployed network.
    families = {kind: trained(CHANGES[kind](members, len(data.x), base)) for kind, members in study.changes}
    groups = GROUPS.get(data.name)
    if groups is not None:
        families = {kind: family.merged(groups) for kind, family in families.items()}
    if data.name in study.untargeted:
        return Trial(data, seed, model, None, families, groups)
    model = model if groups is None else merged(model, groups)
    return Trial(data, seed, model, other_class(model, data.question), families, None)
