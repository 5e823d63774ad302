"""DiCE's own answers, brought home: asked about a real table with every kind of column, as an object and as JSON.

DiCE lives in an environment of its own. Its lock file pins what both need to the same versions as ours, so that here it
is enough to look there for what is missing.
"""

import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from conftest import EVERYTHING, everything

from holdfast import Encoding, Recipe, Retraining, audit, load_audit, predict, save_family, seeds, train
from holdfast.external.dice import from_dice
from holdfast.external.tables import from_tables

HOME = Path(__file__).parents[2] / ".venv-dice"
sys.path += [str(folder) for folder in HOME.glob("lib/python*/site-packages")]
dice_ml = pytest.importorskip("dice_ml", reason="DiCE is not installed; make .venv-dice/.installed")

# Its copies of True and False are all True, so they are given as text.
SCHEMA = EVERYTHING.revise("owner", levels=("no", "yes"))
VARIED = [feature.name for feature in SCHEMA.features if feature.mutable]


class Classifier:
    """Our network as DiCE calls one: numbers may come as objects, and levels that are numbers come as text."""

    def __init__(self, network, encoding):
        self.network, self.encoding = network, encoding

    def predict_proba(self, table):
        table = table.astype({"income": float, "age": int, "debt": int, "delay": int})
        if self.encoding.schema == EVERYTHING:
            table["owner"] = table["owner"].astype(str) == "True"
        return self.network(self.encoding.encode(table)).softmax(1).numpy()

    def predict(self, table):
        return self.predict_proba(table).argmax(1)


@pytest.fixture(scope="module")
def question():
    table = everything(200)
    table["owner"] = np.where(table["owner"], "yes", "no")
    encoding = Encoding.fit(table, SCHEMA)
    x, y = encoding.encode(table), encoding.labels(table)
    family = train(x, y, Recipe((16, 8), epochs=30, batch=16), [Retraining(), *seeds(3, start=5)])
    return table, table.iloc[20:28].rename(index="person {}".format), encoding, family


def ask(question, varied=VARIED, **settings):
    table, asked, encoding, family = question
    data = dice_ml.Data(
        dataframe=table.assign(outcome=predict(family[0], encoding.encode(table)).numpy()),
        continuous_features=["income", "age", "debt"],
        outcome_name="outcome",
    )
    model = dice_ml.Model(model=Classifier(family[0], encoding), backend="sklearn")
    np.random.seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return dice_ml.Dice(data, model, method="random").generate_counterfactuals(
            asked.drop(columns="outcome"), total_CFs=2, features_to_vary=varied, **settings
        )


@pytest.fixture(scope="module")
def result(question):
    return ask(question, random_seed=0)


def test_what_dice_found_is_found(question, result):
    _, asked, encoding, family = question
    brought = from_dice(asked, result, encoding, family[0])
    answer = brought.counterfactuals
    counts = [len(example.final_cfs_df_sparse) for example in result.cf_examples_list]
    assert brought.labels.tolist() == np.repeat(asked.index, counts).tolist()
    assert len(answer) == 16
    assert torch.equal(answer.origin, encoding.encode(asked.loc[brought.labels]))
    assert answer.found.float().mean() > 0.9  # making them sparser costs DiCE a class now and then
    assert len(brought.problems) == (~answer.found).sum()
    theirs = pd.concat([example.final_cfs_df_sparse for example in result.cf_examples_list])
    assert torch.equal(predict(family[0], answer.point), torch.tensor(theirs["outcome"].astype(int).to_numpy()))
    back = encoding.decode(answer.point)
    for feature in SCHEMA.features:
        if feature.is_numeric:
            np.testing.assert_allclose(back[feature.name], theirs[feature.name].astype(float), rtol=1e-6)
        else:
            assert back[feature.name].tolist() == theirs[feature.name].tolist()
    kept = torch.tensor([place.start for feature, place in encoding.places if not feature.mutable])
    assert torch.equal(answer.point[:, kept], answer.origin[:, kept])
    assert ((answer.point == answer.origin).sum(1) >= encoding.width - 8).all()  # what stays, stays to the last bit
    assert 0 <= audit(answer, family[1:]).rate <= 1


def test_its_json_says_the_same(question, result):
    _, asked, encoding, family = question
    live, saved = (from_dice(asked, told, encoding, family[0]) for told in (result, result.to_json()))
    assert torch.equal(live.counterfactuals.point, saved.counterfactuals.point)
    assert torch.equal(live.counterfactuals.found, saved.counterfactuals.found)
    assert live.labels.equals(saved.labels)


def test_its_tables_say_the_same(question, result):
    _, asked, encoding, family = question
    labelled = zip(asked.index, result.cf_examples_list, strict=True)
    tables = [example.final_cfs_df_sparse.set_index([[label] * 2]) for label, example in labelled]
    points = pd.concat(tables).drop(columns="outcome")
    one = from_dice(asked, result, encoding, family[0])
    other = from_tables(asked, points, encoding, family[0])
    torch.testing.assert_close(one.counterfactuals.point, other.counterfactuals.point)
    assert torch.equal(one.counterfactuals.found, other.counterfactuals.found)


def test_the_schema_is_more_than_dice_knows(question, result):
    """DiCE samples debts of 908 where the schema goes in hundreds; that is said, row by row."""
    _, asked, encoding, family = question
    strict = from_dice(asked, result, encoding, family[0], space=encoding.space)
    loose = from_dice(asked, result, encoding, family[0])
    assert torch.equal(strict.counterfactuals.point, loose.counterfactuals.point)
    broken = strict.problems[strict.problems["problem"] == "violates the constraints"]
    assert len(broken) > 0
    assert broken["detail"].str.contains("goes in steps of 100").any()
    assert strict.counterfactuals.found.sum() < loose.counterfactuals.found.sum()


def test_a_row_without_an_answer_stays(question):
    """A smaller debt alone helps some and not others."""
    _, asked, encoding, family = question
    result = ask(question, varied=["debt"], random_seed=0)
    given_up = [example.final_cfs_df_sparse is None for example in result.cf_examples_list]
    assert 0 < sum(given_up) < 8
    brought = from_dice(asked, result, encoding, family[0])
    without = brought.problems[brought.problems["problem"] == "no counterfactual"]
    assert without["row"].tolist() == asked.index[given_up].tolist()
    assert set(brought.labels) == set(asked.index)
    saved = from_dice(asked, result.to_json(), encoding, family[0])
    assert torch.equal(saved.counterfactuals.found, brought.counterfactuals.found)
    assert saved.problems.equals(brought.problems)


def test_its_copy_of_a_person_is_not_asked_who_they_are(question):
    """DiCE reads its own "False" as True, in its copy of the row and in what it has sampled."""
    table = everything(200)
    encoding = Encoding.fit(table, EVERYTHING)
    network = train(
        encoding.encode(table), encoding.labels(table), Recipe((16, 8), epochs=30, batch=16), [Retraining()]
    )
    asked = table.iloc[20:28]
    result = ask((table, asked, encoding, network), varied=["owner", "debt"], random_seed=0)
    assert not asked["owner"].all()
    assert all(example.test_instance_df["owner"].all() for example in result.cf_examples_list)
    brought = from_dice(asked, result, encoding, network[0])
    assert torch.equal(brought.counterfactuals.origin, encoding.encode(asked.loc[brought.labels]))
    frame = brought.counterfactuals.to_frame(encoding, asked.loc[brought.labels])
    moved = frame["owner"] != asked.loc[brought.labels, "owner"]
    assert frame["owner"][moved].all()


def test_the_rows_must_be_the_ones_dice_was_asked(question, result):
    _, asked, encoding, family = question
    with pytest.raises(ValueError, match="DiCE was not asked about this data: row 'person 27'"):
        from_dice(asked[::-1], result, encoding, family[0])


def test_the_command_line_audits_what_dice_saved(question, result, tmp_path):
    table, asked, encoding, family = question
    table.to_csv(tmp_path / "known.csv", index=False)
    asked.rename_axis("person").to_csv(tmp_path / "asked.csv")
    SCHEMA.save(tmp_path / "schema.toml")
    save_family(family, tmp_path / "family")
    (tmp_path / "dice.json").write_text(result.to_json())
    words = ["--data", "known.csv", "--schema", "schema.toml", "--people", "asked.csv", "--unconstrained",
             "--index", "person", "--counterfactuals", "dice.json", "--retrained", "family",
             "--out", "results"]  # fmt: skip
    ran = subprocess.run(
        [sys.executable, "-m", "holdfast", "audit", *words], cwd=tmp_path, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    brought = from_dice(asked, result, encoding, family[0])
    expected = audit(brought.counterfactuals, family[1:])
    assert (
        f"{int(brought.counterfactuals.found.sum())} of {len(brought.labels)} counterfactuals are valid" in ran.stdout
    )
    kept = load_audit(tmp_path / "results" / "audit")
    assert kept.rate == expected.rate
    assert torch.equal(kept.predictions, expected.predictions)
