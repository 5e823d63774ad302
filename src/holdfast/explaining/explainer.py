"""One object for a table and a model: advice for people, and an audit of it."""

from __future__ import annotations

import logging
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from holdfast.auditing.audit import Audit
from holdfast.auditing.audit import audit as audited_by
from holdfast.explaining.advice import Advice
from holdfast.explaining.answering import ExplainRequest, advice_of
from holdfast.explaining.file_audit import FileAudit, audit_points, named_as_in_advice, rows_named
from holdfast.explaining.frames import as_pandas, is_polars
from holdfast.explaining.provenance import provenance
from holdfast.explaining.roles import Roles, Sizes, divided
from holdfast.explaining.saving import load_explainer, save_explainer, table_hash
from holdfast.explaining.searching import check_method, chosen_method, searched
from holdfast.explaining.sources import SOURCES, check_source, retrained, told_of
from holdfast.explaining.wanted import wanted, wished
from holdfast.families.family import Family
from holdfast.families.model_files import read_deployed
from holdfast.families.perceptron import Network
from holdfast.families.recipe import Recipe, Retraining
from holdfast.families.resemblance import FEW, are_one, rather
from holdfast.families.training import train
from holdfast.guarantees.calibration import fewest_models
from holdfast.models.adapters.input_spec import Takes
from holdfast.models.adapters.output_spec import Outputs
from holdfast.models.adapting import as_model
from holdfast.models.files.reading import read_model
from holdfast.models.model import NO_CLASS, Model, predict, predict_or_none
from holdfast.models.sanity_checks import ClassOrderWarning, check_class_order
from holdfast.models.wrapped import WrappedModel
from holdfast.search.counterfactuals import Method
from holdfast.search.plans import norm_of
from holdfast.search.stricter import checked_values
from holdfast.tabular.encoding import Encoding, Scaling
from holdfast.tabular.identifying import matched, row_labels
from holdfast.tabular.inspection import leaks
from holdfast.tabular.schema import Schema
from holdfast.utils.messages import did_you_mean, some
from holdfast.utils.settings import check_flag, check_number, check_share, check_whole
from holdfast.utils.threads import threads_at_most

LOG = logging.getLogger(__name__)
MOST_PLANS = 100
TRIED = 256  # rows of the table that the model is asked about at once, to see whether it answers


@dataclass(frozen=True, eq=False, repr=False)
class Explainer:
    """From a table and a model to advice that retrained models accept too.

    Making an explainer checks what was given and asks the model about some rows. Nothing is retrained until `explain`,
    `audit`, `save` or ``family`` needs it; then it is kept for the next call.

    Args:
        model: what decides now: a fitted model of scikit-learn, XGBoost, LightGBM, torch, Keras or ONNX, a
            function, or the path of a model's file. Where there is no model yet, give a `Recipe`: holdfast trains a
            network, and every output says so
        table: the rows that the model was trained on, with their label: a DataFrame of pandas or polars
        label: the table's column of classes; may be left out where a schema names it
        want: the class that people want; a list of classes of which any will do; or a Series or dictionary with one
            class for each person, by the label of their row. May be left out for two classes: then everybody wants
            the other one
        schema: what the columns mean and what people can change: a `Schema`, or the path of its file. If it is left
            out, it is read off the table, which does not show what nobody can change
        retrain: where retrained models come from. Changes, such as ``seeds(96)`` or ``changes.bootstrap(96)``; a
            function (rows, seed) -> model, alone or with changes, ``(function, seeds(96))``; or models: a list, a
            `Family`, or the folder of one. Without it, nobody knows whether advice holds
        recipe: for changes: how a network is trained again, ``Recipe(network=module)``; or an estimator that is not
            fitted. An estimator, or a booster, needs none
        params: for changes of a bare booster that does not hold them, such as one of XGBoost from a file: the
            parameters that it was trained with, ``{"max_depth": 3, "learning_rate": 0.1}``; see `refit`
        sizes: how many of the retrained models rehearse, select and audit; see `Sizes`
        constrained: False: any change of any feature will do, to values that the table has
        plausible: how like real people of the wanted class an answer must be: this share of them would pass; None:
            it need not be like them
        scaling: how numbers are scaled for models of encoded rows, and for costs; see `Encoding.fit`
        classes: the classes in the order of the model's outputs, where it does not name them and their order is not
            the schema's (which, read off the table, is the alphabet's)
        takes: how the model is asked, where that cannot be found out; see `as_model`
        outputs: how the model is asked, where that cannot be found out; see `as_model`
        store: a folder that keeps what was retrained, so that interrupted work goes on from there
        workers: processes that retrain, and threads that search; one per core if left out
        progress: True: show progress bars

    Examples:
        >>> import pandas as pd
        >>> from sklearn.linear_model import LogisticRegression
        >>> import holdfast as hf
        >>> table = pd.DataFrame({"income": range(10, 90, 2), "debt": [8, 2, 5, 9] * 10})
        >>> table["loan"] = ["yes" if row.income > 6 * row.debt else "no" for row in table.itertuples()]
        >>> model = LogisticRegression().fit(table[["income", "debt"]], table["loan"])
        >>> people = pd.DataFrame({"income": [20, 24], "debt": [9, 8]}, index=["Ada", "Bo"])
        >>> explainer = hf.Explainer(model, table, label="loan", want="yes", retrain=hf.changes.bootstrap(6), workers=1)
        >>> advice = explainer.explain(people, hold=0.5)
        >>> len(advice), advice.table().columns.tolist()
        (2, ['id', 'plan', 'feature', 'now', 'then'])
        >>> len(advice.audit.kinds)  # of the six, two audit: they had no say in the plans
        2
    """

    model: Any
    table: Any
    label: str | None = None
    want: Any = None
    schema: Schema | str | Path | None = None
    retrain: Any = None
    recipe: Any = None
    params: Mapping[str, Any] | None = None
    sizes: Sizes = field(default_factory=Sizes)
    constrained: bool = True
    plausible: float | None = 0.95
    scaling: Scaling = "standard"
    takes: Takes | None = None
    outputs: Outputs | None = None
    classes: Sequence[Any] | None = None
    store: str | Path | None = None
    workers: int | None = None
    progress: bool = False

    def __post_init__(self) -> None:
        for name in ("constrained", "progress"):
            check_flag(name, getattr(self, name))
        if not isinstance(self.sizes, Sizes):
            raise TypeError(f"sizes is {self.sizes!r}; give Sizes(rehearsal=32, selection=32, audit=32)")
        if self.workers is not None:
            check_whole("workers", self.workers, least=1)
        self._check_label()
        self._check_classes()
        if self.want is not None:
            wanted(self.want, self.encoding.schema)
        if not self.ours:
            self._check_model()
        check_source(self.retrain, None if self.ours else self._own, self.training_recipe, self.params)

    # ---- what was given, ready to be used ----

    @cached_property
    def rows(self) -> pd.DataFrame:
        """The table as pandas has it."""
        return as_pandas(self.table, "table")

    @cached_property
    def encoding(self) -> Encoding:
        """The schema and the table's scaling: rows of the table to numbers, and back."""
        schema = self.schema_given
        if not self.constrained:
            free = schema.revise(*schema.names, mutable=True, direction="any", avoid=())
            schema = replace(free, relations=())
        return Encoding.fit(self.rows, schema, self.scaling, self.plausible if self.constrained else None)

    @cached_property
    def schema_given(self) -> Schema:
        """The schema with all its constraints: as it was given, or read off the table."""
        schema = self._schema_read
        if self.classes is None:
            return schema
        given = list(self.classes) if isinstance(self.classes, (list, tuple)) else []
        if len(given) != len(schema.classes) or any(name not in given for name in schema.classes):
            raise ValueError(
                f"classes is {self.classes!r}; give the schema's classes, {some(schema.classes)}, in the order of the "
                "model's outputs"
            )
        return replace(schema, classes=tuple(given))

    @property
    def _schema_read(self) -> Schema:
        if isinstance(self.schema, Schema):
            return self.schema
        if self.schema is not None:
            return Schema.load(self.schema)
        if self.label is None:
            raise ValueError(
                "neither a schema nor a label was given; name the table's column of classes, label='...', or give a "
                f"schema; the columns are {some(self.rows.columns, 12)}"
            )
        return Schema.infer(self.rows, self.label)

    @property
    def ours(self) -> bool:
        """Whether the deployed model is a network that holdfast trains, for want of one."""
        return isinstance(self.model, Recipe)

    @cached_property
    def deployed(self) -> Model:
        """The deployed model, as a `Model` of encoded rows."""
        if self.ours:
            x, y = self.encoding.encode(self.rows), self.encoding.labels(self.rows)
            return train(x, y, self.model, [Retraining()], store=self.store, progress=self.progress)[0]
        with warnings.catch_warnings():
            if self.encoding.schema.label in self.rows:
                warnings.simplefilter("ignore", ClassOrderWarning)  # `_check_model` makes an error of it
            return self._read

    @property
    def _read(self) -> Model:
        if isinstance(self.model, (str, Path)):
            if self.takes is None and self.outputs is None:
                return read_deployed(self.model, self.encoding)
            return read_model(self.model, self.encoding, takes=self.takes, outputs=self.outputs)
        return as_model(self.model, self.encoding, takes=self.takes, outputs=self.outputs)

    @property
    def _own(self) -> Any:
        """The user's object, or what was read from their file."""
        return getattr(self.deployed, "wrapped", self.deployed)

    @property
    def training_recipe(self) -> Any:
        """How the deployed model is trained again, where that was said."""
        return self.model if self.ours else self.recipe

    @cached_property
    def family(self) -> Family:
        """All the retrained models; what must be retrained is, when this is first asked for."""
        if self.retrain is None:
            raise ValueError(f"there are no retrained models; give a source: {SOURCES}")
        return retrained(self)

    def retrained_from(self, family: Family) -> str:
        """Where these retrained models come from, in words."""
        return told_of(self, family)

    @cached_property
    def roles(self) -> Roles:
        """The retrained models, shared out among those that rehearse, select and audit."""
        self._check_enough()
        roles = divided(self.family, self.sizes)
        LOG.info("retrained models: %s", roles)
        return roles

    # ---- advice ----

    def explain(
        self,
        people: Any,
        *,
        hold: float | None = None,
        promise: float | None = None,
        plans: int = 1,
        method: str | Method | None = None,
        want: Any = None,
        wishes: Any = None,
        parameter_values: Sequence[float] | None = None,
        index: str | None = None,
    ) -> Advice:
        """Advice for each row of ``people``, a table with the same features. Other columns, and the label, are passed
        over.

        Args:
            hold: about each person: give only plans that at least this share of the selection models accept. For
                people without such a plan, the best that was found is shown apart, as not durable
            promise: about all plans together: one more retrained model invalidates at most this share of them on
                average, or nothing is promised. Give ``hold``, ``promise`` or neither
            plans: up to so many for each person, which change different features
            method: a name, such as "min-l1+sns", or a method. Without one: the cheapest plan that the rehearsal
                models accept too where ``hold`` or ``promise`` is given, and else the cheapest plan ("min-l1")
            want: in the place of the explainer's own
            wishes: what people ask for themselves, within what the schema allows: a `Wish` for everybody; a
                dictionary or Series of wishes by the labels of people, of whom others have none; or a list with
                one, or None, each
            parameter_values: with ``promise``: the values of the method's parameter that are tried, in the place of
                its own
            index: the column of people that names the rows. Without it, a column that does so, such as id, or the
                table's index; ``advice.decided["rows"]`` says which
        """
        _check_question(hold, promise, plans)
        if (hold is not None or promise is not None) and self.retrain is None:
            asked_for = "hold" if promise is None else "promise"
            raise ValueError(f"{asked_for}= needs retrained models, and there are none; give a source: {SOURCES}")
        check_method(method)
        if parameter_values is not None:
            if promise is None:
                raise ValueError("parameter_values= is what a promise chooses from; give promise= too, or leave it out")
            checked_values(parameter_values)
        if promise is not None:
            self._check_promise(promise)
        request, row_labels_from = self._asked(people, want, wishes, index)
        searched_by, rule = chosen_method(method, request.roles, hold is not None or promise is not None)
        if method is not None:
            searched_by = self._fitted(searched_by)
        decided = {
            "method": rule,
            "settings": repr(searched_by),
            "wanted": str(request.goal),
            "hold": hold,
            "promise": promise,
            "plans": plans,
            "wishes": sum(wish is not None for wish in request.wishes),
            "rows": row_labels_from,
            "cost": f"l{norm_of(searched_by)} distance in the encoded table (scaling '{self.scaling}')",
            "people_sha256": table_hash(self.encoding, request.people[list(self.encoding.schema.names)]),
            **self._decided(),
        }
        with threads_at_most(self.workers):
            question = request.question(plans, self.progress)
            outcome = searched(question, searched_by, request.roles, hold, promise, parameter_values)
            return advice_of(request, outcome, norm_of(searched_by), decided, is_polars(people))

    def _asked(self, people: Any, want: Any, wishes: Any, index: str | None) -> tuple[ExplainRequest, str]:
        """The people, ready to be searched for, and where their labels come from."""
        schema = self.encoding.schema
        features = (*schema.names, schema.label)
        frame, row_labels_from = row_labels(as_pandas(people, "people"), features, index, "people", self.rows)
        if not len(frame):
            raise ValueError("there is nobody to explain: the table of people has no rows")
        _check_features(frame, schema)
        goal = wanted(self.want if want is None else want, schema, frame.index)
        wishes_by_row = wished(wishes, frame.index)
        space = self.encoding.space_for(wishes_by_row) if wishes_by_row else self.encoding.space
        x = self.encoding.encode(frame)
        model = goal.model(self.deployed)
        now, target = predict(model, x).cpu(), goal.targets(model, x, frame.index)
        # Last, since retraining takes long: whatever is wrong with the people is told by now.
        roles = None if self.retrain is None else self.roles.wanted_by(goal)
        known = leaks(self.rows, self.encoding.schema)
        return ExplainRequest(
            frame, goal, self.encoding, model, x, target, now, roles, space, wishes_by_row, known
        ), row_labels_from

    def _fitted(self, method: Method) -> Method:
        """The method with the data that it wants to know."""
        space = self.encoding.space
        if self.encoding.schema.label not in self.rows:
            return method
        return method.fit(self.encoding.encode(self.rows), self.encoding.labels(self.rows), space)

    def _decided(self) -> dict[str, Any]:
        """What does not depend on the people."""
        decided = {
            "model": self._about_model,
            "model_is_ours": self.ours,
            "schema": "read off the table" if self.schema is None else "given",
            "constraints": "on" if self.constrained else "off",
            "plausible": self.plausible if self.constrained else None,
            "retrained": {} if self.retrain is None else self.roles.counts(),
            "confidence": 0.95,
            **self._provenance,
        }
        return decided | ({"warnings": self._doubts} if self._doubts else {})

    @property
    def named(self) -> str:
        """The deployed model in words: its file, or what it is."""
        if isinstance(self.model, (str, Path)):
            return f"the member of kind 'base' of {self.model}" if Path(self.model).is_dir() else str(self.model)
        return self._about_model

    @property
    def _about_model(self) -> str:
        return "a network that holdfast trained" if self.ours else _about(self.deployed)

    @cached_property
    def _provenance(self) -> dict[str, Any]:
        return provenance(self)

    @cached_property
    def _doubts(self) -> list[str]:
        """Why what the retrained models say may tell little of retrainings of the deployed one."""
        if self.retrain is None:
            return []
        family = self.roles.audit
        doubts = [f"surrogates: {family.surrogates}"] if family.surrogates else []
        x = self.encoding.encode(self.rows.iloc[:FEW])
        for kind, count in Counter(family.kinds).items():
            members = family.chosen([number for number, its_kind in enumerate(family.kinds) if its_kind == kind])
            if count > 1 and are_one(members, x):
                doubts.append(
                    f"one model: the {count} retrained models of kind '{kind}' that audit the plans all answer alike, "
                    "so whether the plans hold is not known. Such a change does not change this model; "
                    f"{rather(len(self.family))}"
                )
        return doubts

    # ---- audit ----

    def audit(
        self, advice: Any, people: Any = None, *, want: Any = None, index: str | None = None
    ) -> Audit | FileAudit:
        """How often the audit models, which had no say in it, invalidate advice: what `explain` gave (an `Audit`), or a
        table of counterfactuals from anywhere, in the table's units (a `FileAudit`).

        A table is matched to ``people``, or to the explainer's own table, by the column that both have (or ``index``).
        Of the answer, ``audit`` is the `Audit`, and ``imported.problems`` says what is wrong with which row.
        """
        if isinstance(advice, Advice):
            return audited_by(advice.counterfactuals, advice.goal.family(self.roles.audit))
        points = as_pandas(advice, "advice")
        known = self.rows if people is None else as_pandas(people, "people")
        schema = self.encoding.schema
        whom = "the table" if people is None else "people"
        known = named_as_in_advice(known, points)
        names, features = (whom, "counterfactuals"), (*schema.names, schema.label)
        known, points, how_matched = matched(known, points, features, index, names, self.rows)
        LOG.info("%s", how_matched)
        whose = rows_named(known, points) if people is None else known
        return audit_points(self, whose, points, want=want, matched=how_matched, audit_models_only=True)

    # ---- kept ----

    def save(self, folder: str | Path) -> Path:
        """Keep the schema, the settings and the retrained models in a folder, with the hashes of table and model."""
        return save_explainer(self, folder)

    @classmethod
    def load(cls, folder: str | Path, *, table: Any, model: Any = None, **settings: Any) -> Explainer:
        """The explainer that `save` kept, given the same model and table again: another one is refused.

        The model may be left out where it was a network that holdfast trained. ``settings`` are those of the explainer
        that are to differ, such as progress=True.
        """
        return load_explainer(cls, folder, model, table, settings)

    # ---- checks, before any long work ----

    def _check_label(self) -> None:
        label = self.schema_given.label
        if self.label is not None and self.label != label:
            raise ValueError(
                f"label is '{self.label}', but the schema's label is '{label}'; leave label out, or correct the schema"
            )
        needs = "to refit" if self.retrain is not None else "to say who has which class"
        if label not in self.rows and (self.retrain is not None or self.ours):
            raise ValueError(
                f"the table has no column '{label}'{did_you_mean(label, self.rows.columns)}, which is the label and is "
                f"needed {needs}; the columns are {some(self.rows.columns, 12)}"
            )

    def _check_classes(self) -> None:
        """Raise where the table shows one class only: then nobody can say what people of another class are like."""
        label, classes = self.schema_given.label, self.schema_given.classes
        if label not in self.rows:
            return
        there = [name for name in classes if (self.rows[label] == name).any()]
        if len(there) < 2:
            raise ValueError(
                f"all {len(self.rows)} rows of the table have the label {some(there)} of '{label}'; the schema has the "
                f"classes {some(classes)}: give the rows of all classes that the model was trained on"
            )

    def _check_model(self) -> None:
        """Ask the model about some rows of the table: what it cannot answer, it cannot explain."""
        some_rows = self.rows.iloc[np.linspace(0, len(self.rows) - 1, min(len(self.rows), TRIED)).astype(int)]
        classes = predict_or_none(self.deployed, self.encoding.encode(some_rows))
        silent = int((classes == NO_CLASS).sum())
        if silent:
            raise ValueError(
                f"the model answers NaN for {silent} of {len(classes)} rows of its own table: it has no class for "
                "them; check that the columns are those it was trained on, in the same units"
            )
        check_class_order(self.deployed, self.encoding, some_rows)
        if len(classes) >= TRIED and len(set(classes.tolist())) == 1:
            warnings.warn(
                f"the model gives all of {len(classes)} rows of its own table the class "
                f"'{self.encoding.schema.classes[int(classes[0])]}': there may be nothing to explain, or it may get "
                "its columns in other units or in another order",
                stacklevel=4,
            )

    def _check_enough(self) -> None:
        """Raise where the changes are too few to be shared out: before they are trained."""
        for kind, count in self._changes.items():
            self.sizes.of(count, kind, len(self._changes))

    @property
    def _changes(self) -> dict[str, int]:
        """How many retrainings of each kind there will be, as far as that is known before they are made."""
        if isinstance(self.retrain, Family):
            return dict(Counter(self.retrain.kinds))
        given = self.retrain if isinstance(self.retrain, (list, tuple)) else []
        return dict(Counter(change.kind for change in given if isinstance(change, Retraining)))

    def _check_promise(self, rate: float) -> None:
        """Raise where no answer of the selection models could keep the rate: before they are trained."""
        needed = fewest_models(rate)
        for kind, count in self._changes.items():
            selecting = self.sizes.of(count, kind, len(self._changes))[1]
            if selecting < needed:
                raise ValueError(
                    f"promise={rate:g} needs {needed} selection models of each kind (1 / rate - 1), and {selecting} of "
                    f"{count} of kind '{kind}' select; retrain more, such as {3 * needed}, set sizes=Sizes(selection="
                    f"{needed}) if there are enough (on the command line, --selection {needed}), or promise "
                    f"{1 / (selecting + 1):.3g} or more"
                )

    def __repr__(self) -> str:
        model = "a network that holdfast trains" if self.ours else _about(self.deployed)
        schema = self.encoding.schema
        lines = [
            f"Explainer of {model}",
            f"  {len(self.rows):,} rows, {len(schema.names)} features, label '{schema.label}' "
            f"({', '.join(map(str, schema.classes))})",
        ]
        if self.retrain is None:
            lines.append("  no retrained models: hold= and promise= need some, see retrain=")
        elif "roles" in self.__dict__:
            lines.append(f"  retrained models: {self.roles}")
        else:
            lines.append("  retrained models: made when they are first needed")
        return "\n".join(lines)


def _check_question(hold: Any, promise: Any, plans: Any) -> None:
    if hold is not None and promise is not None:
        raise ValueError(
            "hold= and promise= are two different questions: hold is about each person, promise about all promised "
            "rows together; give one of them"
        )
    if hold is not None:
        check_number("hold", hold)
        if not 0 < hold <= 1:
            raise ValueError(f"hold must be a share of the retrained models above 0 and at most 1, got {hold}")
    if promise is not None:
        check_share("promise", promise)
    check_whole("plans", plans, least=1)
    if plans > MOST_PLANS:
        raise ValueError(f"plans must be {MOST_PLANS} or fewer, got {plans}")


def _check_features(people: pd.DataFrame, schema: Schema) -> None:
    missing = [name for name in schema.names if name not in people]
    if missing:
        close = did_you_mean(missing[0], people.columns)
        raise ValueError(
            f"people lack {len(missing)} of {len(schema.names)} features: {some(missing)}{close}; they have "
            f"{some(people.columns, 12)}"
        )


def _about(model: Model) -> str:
    if isinstance(model, Network):
        sizes = "-".join(str(size) for size in model.sizes)
        return f"a network of fully connected layers, {sizes} (inputs, hidden layers, classes)"
    return model.about if isinstance(model, WrappedModel) else repr(model)
