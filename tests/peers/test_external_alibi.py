"""alibi's own answers, brought home. alibi needs other versions of nearly everything, so it is asked in a process of
its own environment, and answers in the JSON that its explanations write."""

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import EVERYTHING, everything

from holdfast import Encoding, Recipe, Retraining, audit, predict, seeds, train
from holdfast.external.alibi import from_alibi

PYTHON = Path(__file__).parents[2] / ".venv-alibi" / "bin" / "python"
if not PYTHON.exists():
    pytest.skip("alibi is not installed; make .venv-alibi/.installed", allow_module_level=True)

# alibi's categories have a column each, so none is written as zeros.
SCHEMA = EVERYTHING.revise("delay", levels=(0, 1, 2, -9), zero_level=None, avoid=())

ASK = """
import json, logging, sys
import numpy as np
import tensorflow as tf
tf.compat.v1.disable_eager_execution()
logging.disable(logging.WARNING)
from alibi.explainers import Counterfactual, CounterfactualProto

held = np.load(sys.argv[1])
rows, known = held["rows"], held["known"]
layers = [tf.keras.layers.Dense(held[f"weight_{n}"].shape[1], activation=a) for n, a in enumerate(("relu", "softmax"))]
net = tf.keras.Sequential([tf.keras.Input((rows.shape[1],)), *layers])
net.set_weights([held[f"{part}_{n}"] for n in range(2) for part in ("weight", "bias")])

def prototypes(cat_vars=None, **settings):
    explainer = CounterfactualProto(
        net, shape=(1, rows.shape[1]), use_kdtree=True, theta=10.0, feature_range=(-4.0, 4.0),
        cat_vars=cat_vars, ohe=cat_vars is not None, **settings,
    )
    explainer.fit(known, d_type="abdm", disc_perc=[25, 50, 75])
    return explainer

cat_vars = {int(column): int(levels) for column, levels in held["categories"]}
explainers = {
    "categories": prototypes(cat_vars, max_iterations=100, c_steps=3),
    "free": prototypes(max_iterations=100, c_steps=3),
    "none": prototypes(max_iterations=1, c_steps=1, c_init=0.0),
    "wachter": Counterfactual(net, shape=(1, rows.shape[1]), target_proba=0.9, tol=0.1, max_iter=100, max_lam_steps=3),
}
told = {name: [e.explain(row[None]).to_json() for row in rows] for name, e in explainers.items()}
json.dump(told, open(sys.argv[2], "w"))
"""


@pytest.fixture(scope="module")
def question():
    table = everything(200)
    encoding = Encoding.fit(table, SCHEMA, "standard-numeric")
    x, y = encoding.encode(table), encoding.labels(table)
    family = train(x, y, Recipe((16,), epochs=40, batch=16), [Retraining(), *seeds(3, start=5)])
    return table.iloc[20:25].rename(index="person {}".format), x, encoding, family


@pytest.fixture(scope="module")
def told(question, tmp_path_factory):
    asked, x, encoding, family = question
    folder = tmp_path_factory.mktemp("alibi")
    layers = zip(family[0].weights, family[0].biases, strict=True)
    parts = {
        f"{part}_{n}": v.numpy()
        for n, pair in enumerate(layers)
        for part, v in zip(("weight", "bias"), pair, strict=True)
    }
    groups = [(place.start, feature.width) for feature, place in encoding.places if feature.kind == "categorical"]
    rows = encoding.encode(asked).numpy()
    np.savez(folder / "question.npz", rows=rows, known=x.numpy(), categories=np.array(groups), **parts)
    (folder / "ask.py").write_text(ASK, encoding="utf-8")
    command = [PYTHON, folder / "ask.py", folder / "question.npz", folder / "answer.json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads((folder / "answer.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("explainer", ["categories", "free", "wachter"])
def test_what_alibi_found_is_found(explainer, question, told):
    asked, _, encoding, family = question
    brought = from_alibi(asked, told[explainer], encoding, family[0])
    answer = brought.counterfactuals
    found = [json.loads(text)["data"]["cf"] for text in told[explainer]]
    assert sum(cf is not None for cf in found) >= 3
    assert brought.labels.equals(asked.index)
    assert torch.equal(answer.origin, encoding.encode(asked))
    for row, cf in enumerate(found):
        if cf is None:
            assert not answer.found[row]
            assert torch.equal(answer.point[row], answer.origin[row])
        else:
            assert answer.point[row].tolist() == cf["X"][0]  # to the last bit
            assert int(predict(family[0], answer.point)[row]) == cf["class"]
            assert bool(answer.found[row]) == (cf["class"] != json.loads(told[explainer][row])["data"]["orig_class"])
    assert answer.found.sum() >= 3
    assert len(brought.problems) == (~answer.found).sum()
    assert 0 <= audit(answer, family[1:]).rate <= 1
    rows = from_alibi(encoding.encode(asked).numpy(), told[explainer], encoding, family[0])
    assert torch.equal(rows.counterfactuals.point, answer.point)


def test_categories_are_levels_where_alibi_was_told_of_them(question, told):
    asked, _, encoding, family = question
    columns = [c for feature, p in encoding.places if feature.kind == "categorical" for c in range(p.start, p.stop)]
    whole, soft = (
        from_alibi(asked, told[name], encoding, family[0]).counterfactuals.point[:, columns]
        for name in ("categories", "free")
    )
    assert set(whole.unique().tolist()) <= {0.0, 1.0}
    assert len(soft.unique()) > 2
    strict = from_alibi(asked, told["free"], encoding, family[0], space=encoding.space)
    assert set(strict.problems["problem"]) >= {"violates the constraints"}
    assert not strict.counterfactuals.found.any()


def test_where_alibi_finds_none_the_row_stays(question, told):
    asked, _, encoding, family = question
    brought = from_alibi(asked, told["none"], encoding, family[0])
    assert repr(brought) == "ImportedCounterfactuals(0 of 5 rows found; no counterfactual: 5)"
    assert torch.equal(brought.counterfactuals.point, brought.counterfactuals.origin)
