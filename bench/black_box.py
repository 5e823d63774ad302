"""Models that only answer: ours against the real DiCE on the same models, rows and number of questions.

The model is a scikit-learn pipeline (a random forest, gradient boosting or a network), handed over as a plain function
from a table to probabilities, so that nobody can look inside. DiCE runs in an environment of its own and asks the same
function through a socket; what it may change is said as in `schema_dice.py`, and its random and its genetic search are
asked for four counterfactuals each. `calls_theirs` is how many rows it asks about for each person, without what it asks
before the first. Ours (`MinCost(norm=1)`, any valid point) gets as many for each person and in `calls_ours` counts all
it asks, the rows that it learns from for all people included. All points are judged by the same `assess`; costs (l1)
are means over the rows that both found, and `cost_ratio` is ours over theirs.

The network is searched by its gradient too, through its exact translation: `cost_ratio` in the second table is what the
same search costs when it may only ask, over what it costs with the gradient. Without DiCE's environment (make fidelity
builds it) the first table has our columns alone. Datasets are found through HOLDFAST_DATA.
"""

from __future__ import annotations

import subprocess
import tempfile
import warnings
from collections.abc import Callable
from multiprocessing.connection import Listener
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from _side_by_side import parser_of, show, timed
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import schema_dice
from holdfast import Encoding, MinCost, as_model, datasets, other_class
from holdfast.datasets.prepared import prepare
from holdfast.models.merged import Merged, merge_logits, merged
from schema_dice import HERE, PYTHON, THEIRS, Question, judged, readable, write

MODELS = {
    "forest": lambda: RandomForestClassifier(30, min_samples_leaf=3, random_state=0),
    "boosting": lambda: GradientBoostingClassifier(random_state=0),
    "network": lambda: MLPClassifier((32, 16), alpha=0.01, max_iter=60, random_state=0),
}
MOST = 5000  # rows that a model is fitted to


def pipeline(encoding: Encoding, table: pd.DataFrame, model: str) -> Pipeline:
    features = encoding.schema.features
    levels, numbers = ([f.name for f in features if f.is_numeric == kind] for kind in (False, True))
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), levels), (StandardScaler(), numbers)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return make_pipeline(columns, MODELS[model]()).fit(
            table[list(encoding.schema.names)], table[encoding.schema.label]
        )


def ask(name: str, model: str, count: int) -> tuple[Question, Pipeline]:
    data = prepare(name)
    encoding, table = data.encoding, data.train[:MOST]
    own = pipeline(encoding, table, model)
    deployed, groups = as_model(lambda rows: own.predict_proba(rows)[:, _order(own, encoding)], encoding), _groups(name)
    asked = deployed if name not in schema_dice.MERGED else merged(deployed, groups)
    rows = data.question(count)
    space = encoding.space.to(rows).without_people()
    target = other_class(asked, rows)
    return Question(name, encoding, {}, groups, asked, data.train, data.test[:count], rows, target, space), own


def _order(own: Pipeline, encoding: Encoding) -> list[int]:
    return [list(own.classes_).index(label) for label in encoding.schema.classes]


def _groups(name: str) -> tuple[tuple[int, ...], ...]:
    return schema_dice.MERGED.get(name, ((0,), (1,)))


# ---- both sides ----


def theirs(question: Question) -> dict[str, np.ndarray]:
    """What DiCE finds, asking through a socket."""
    with tempfile.TemporaryDirectory() as folder:
        asked, answered, line = (Path(folder, name) for name in ("question.npz", "answer.npz", "line"))
        write(question, asked)
        with Listener(str(line), "AF_UNIX") as listener:
            script = HERE / "_peers" / "with_dice_black_box.py"
            with subprocess.Popen([PYTHON, script, asked, answered, line], stderr=subprocess.PIPE, text=True) as peer:
                serve(listener, question)
                _, told = peer.communicate()
        if peer.returncode:
            raise SystemExit(f"DiCE failed on {question.name}:\n{told[-3000:]}")
        with np.load(answered) as held:
            return dict(held)


def serve(listener: Listener, question: Question) -> None:
    """Answer until the other side hangs up."""
    features, merges = len(question.encoding.schema.features), isinstance(question.model, Merged)
    deployed: Any = question.model.model if isinstance(question.model, Merged) else question.model
    with listener.accept() as line:
        while True:
            try:
                values = np.frombuffer(line.recv_bytes()).reshape(-1, features)
            except (EOFError, ConnectionError):
                return
            logits = torch.from_numpy(deployed.adapter(readable(values, question.encoding)))
            shares = (merge_logits(logits, question.groups) if merges else logits).softmax(1)
            line.send_bytes(shares.numpy().tobytes())


def search(question: Question, calls: int) -> tuple[Any, float]:
    method = MinCost(norm=1, calls=calls)
    return timed(lambda: method(question.model, question.rows, question.target, question.space))


def compare(
    question: Question, model: str, answered: dict[str, np.ndarray] | None, own_calls: int
) -> list[dict[str, Any]]:
    if answered is None:
        answer, seconds = search(question, own_calls)
        return [_ours(question, model, answer, seconds)]
    rows = []
    for method in THEIRS:
        _, cost = judged(question, answered, method, 1)
        asked = answered[f"{method}_calls"]
        answer, seconds = search(question, max(1, int(asked.mean())))
        both = answer.found & cost.isfinite()
        spent, least = (float(values[both].double().mean()) for values in (answer.cost(1), cost))
        rows.append(
            _ours(question, model, answer, seconds)
            | {
                "against": method,
                "found_theirs": int(cost.isfinite().sum()),
                "both": int(both.sum()),
                "cost_ours": spent,
                "cost_theirs": least,
                "cost_ratio": spent / least,
                "calls_theirs": float(asked.mean()),
                "ms_theirs": 1000 * float(answered[f"{method}_seconds"]) / len(question.rows),
                "late": int(answered[f"{method}_late"]) + len(answered[f"{method}_failed"]),
            }
        )
    return rows


def _ours(question: Question, model: str, answer: Any, seconds: float) -> dict[str, Any]:
    count = len(question.rows)
    return {
        "dataset": question.name,
        "model": model,
        "rows": count,
        "found_ours": int(answer.found.sum()),
        "cost_ours": float(answer.cost(1)[answer.found].double().mean()),
        "calls_ours": answer.calls / count,
        "ms_ours": 1000 * seconds / count,
    }


def beside_the_gradient(question: Question, own: Pipeline, calls: int) -> dict[str, Any]:
    """The same search with the network's exact gradient."""
    translated = as_model(own, question.encoding)
    if question.name in schema_dice.MERGED:
        translated = merged(translated, question.groups)
    asked, _ = search(question, calls)
    led = MinCost(norm=1)(translated, question.rows, question.target, question.space)
    both = asked.found & led.found
    costs = [float(answer.cost(1)[both].double().mean()) for answer in (asked, led)]
    return {
        "dataset": question.name,
        "rows": len(question.rows),
        "found_asking": int(asked.found.sum()),
        "found_gradient": int(led.found.sum()),
        "cost_asking": costs[0],
        "cost_gradient": costs[1],
        "cost_ratio": costs[0] / costs[1],
        "calls": asked.calls / len(question.rows),
    }


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--datasets", nargs="+", default=["german", "heloc"], help="'all' for all that are here")
    parser.add_argument("--models", nargs="+", choices=tuple(MODELS), default=list(MODELS))
    parser.add_argument("--rows", type=int, default=50)
    parser.add_argument("--calls", type=int, default=2000, help="rows asked about for each person, without DiCE")
    options = parser.parse_args()
    names, count, models = options.datasets, options.rows, options.models
    if names == ["all"]:
        names = [name for name, card in datasets.DATASETS.items() if card.state() == "here"]
    if options.quick:
        names, count, models = ["german"], 6, ["network"]
    with_dice = PYTHON.exists() and not options.quick
    if not with_dice:
        print("DiCE is not asked: a quick run leaves it out, and else it needs .venv-dice (make fidelity builds it)")
    answered: Callable[[Question], Any] = theirs if with_dice else lambda question: None
    rows, beside = [], []
    for name in names:
        for model in models:
            question, own = ask(name, model, count)
            rows += compare(question, model, answered(question), options.calls)
            print(rows[-1], flush=True)  # DiCE takes long: what is known already
            if model == "network":
                beside.append(beside_the_gradient(question, own, options.calls))
    show("A model that only answers", rows, options.json)
    if beside:
        show("Asking against the gradient of the same network", beside)


if __name__ == "__main__":
    main()
