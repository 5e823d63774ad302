"""Files in, an audit out: the same numbers as with the library's own values."""

import pandas as pd
import pytest
import safetensors.torch
import torch
from torch import nn

from commands import invoke
from holdfast import (
    PGD,
    Encoding,
    Explainer,
    Family,
    MinCost,
    Recipe,
    Retraining,
    audit,
    load_audit,
    other_class,
    read_model,
    save_family,
    save_model,
    seeds,
    train,
)
from holdfast.datasets import card
from holdfast.datasets.prepared import prepare
from holdfast.explaining.file_audit import audit_points, rows_named
from holdfast.families import training
from holdfast.families.members import read_perceptron
from holdfast.families.model_files import read_deployed, read_retrained
from holdfast.models.model import predict

RECIPE = Recipe((16,), epochs=20, batch=32)


@pytest.fixture(scope="module")
def german(tmp_path_factory):
    """A deployed network, six retrained ones and PGD's counterfactuals, as values and as files."""
    folder = tmp_path_factory.mktemp("german")
    table, schema = card("german").load()
    known, asked = card("german").divide(table)
    asked = asked.iloc[:30]
    encoding = Encoding.fit(known, schema, card("german").scaling)
    x, y = encoding.encode(known), encoding.labels(known)
    family = train(x, y, RECIPE, [Retraining(), *seeds(6)])
    rows = encoding.encode(asked)
    found = PGD(radius=10.0, levels=4, steps=20)(family[0], rows, other_class(family[0], rows), encoding.space)
    save_family(family, folder / "family")
    points = found.to_frame(encoding, asked)
    points.to_csv(folder / "points.csv")
    points.to_parquet(folder / "points.parquet")
    known.to_csv(folder / "known.csv")
    asked.to_csv(folder / "people.csv")
    schema.save(folder / "schema.toml")
    return folder, asked, encoding, family, found


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_the_command_gives_what_the_library_gives(ending, german, tmp_path):
    folder, asked, _, family, found = german
    done = invoke(
        "audit", "--data", "german", "--counterfactuals", folder / f"points.{ending}", "--retrained", folder / "family",
        "--out", "results", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    expected = audit(found, family[1:])
    assert f"{int(found.found.sum())} of 30 counterfactuals are valid and were audited" in done.stdout
    assert f"{expected.rate:.1%} invalidated" in done.stdout
    saved = load_audit(tmp_path / "results" / "audit")
    assert saved.rate == expected.rate
    table = pd.read_csv(tmp_path / "results" / "rows.csv", index_col="row")
    assert table.index.tolist() == sorted(asked.index)  # the rows of the data that are named, in the data's order
    table = table.loc[asked.index]
    assert table["invalidated"].tolist() == pytest.approx(expected.per_row.tolist(), nan_ok=True)
    assert (table["low"].fillna(0) <= table["invalidated"].fillna(0)).all()
    assert sorted(path.name for path in (tmp_path / "results").iterdir()) == [
        "audit",
        "problems.csv",
        "rows.csv",
        "summary.json",
    ]


def test_a_table_of_ones_own_with_models_in_files(german, tmp_path):
    """Modules saved as torch names their layers, a schema file, people who are not in the training table."""
    folder, _, _, family, found = german
    for place in range(7):
        network = family[place]
        module = nn.Sequential(nn.Linear(61, 16), nn.ReLU(), nn.Linear(16, 2))
        for layer, weight, bias in zip((module[0], module[2]), network.weights, network.biases, strict=True):
            layer.weight.data, layer.bias.data = weight.T.contiguous(), bias
        safetensors.torch.save_file(module.state_dict(), tmp_path / f"model_{place}.safetensors")
    models = [word for place in range(1, 7) for word in ("--retrained", f"model_{place}.safetensors")]
    done = invoke(
        "audit", "--data", folder / "known.csv", "--schema", folder / "schema.toml", "--people", folder / "people.csv",
        "--counterfactuals", folder / "points.csv", "--model", "model_0.safetensors", *models,
        cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    saved = load_audit(tmp_path / "holdfast-audit" / "audit")
    expected = audit(found, family[1:])
    assert saved.rate == pytest.approx(expected.rate)
    assert saved.success == pytest.approx(expected.success)
    assert saved.kinds == ("own",) * 6


def test_a_saved_network_is_the_deployed_model_of_the_command(german, tmp_path):
    folder, _, _, family, found = german
    save_model(family[0], tmp_path / "deployed.safetensors")
    save_family(family[1:], tmp_path / "retrained")
    words = ("--data", "german", "--counterfactuals", folder / "points.csv", "--model", "deployed.safetensors")
    done = invoke("audit", *words, "--retrained", "retrained", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert load_audit(tmp_path / "holdfast-audit" / "audit").rate == audit(found, family[1:]).rate
    save_family(family[:1], tmp_path / "itself")
    save_model(family[1], tmp_path / "other.safetensors")
    models = ("--retrained", "deployed.safetensors", "--retrained", "other.safetensors")
    done = invoke("audit", *words, *models, "--out", "again", cwd=tmp_path)  # its own training run in two roles
    assert done.returncode == 1
    assert "a model agrees with itself" in done.stderr


def test_models_of_another_library_in_files(german, tmp_path):
    """Boosters of XGBoost on encoded rows: the deployed one and three retrained ones."""
    xgboost = pytest.importorskip("xgboost")
    _, asked, encoding, *_ = german
    asked, known = asked[10:20], prepare("german").train
    x, y = encoding.encode(known).numpy(), encoding.labels(known).numpy()
    files = [tmp_path / f"{seed}.ubj" for seed in range(4)]
    for seed, file in enumerate(files):
        own = xgboost.XGBClassifier(n_estimators=5, max_depth=3, subsample=0.8, random_state=seed)
        own.fit(pd.DataFrame(x, columns=list(encoding.columns)), y).save_model(file)
    deployed = read_model(files[0], encoding)
    rows = encoding.encode(asked)
    found = MinCost(norm=1)(deployed, rows, other_class(deployed, rows), encoding.space.without_people())
    points = found.to_frame(encoding, asked)
    given = {"schema": encoding.schema, "scaling": encoding.scaling, "constrained": False}
    result = audit_points(Explainer(files[0], known, retrain=files[1:], **given), asked, points)
    assert result.audit.success == found.success
    assert 0 < result.audit.rate < 1
    with pytest.raises(ValueError, match="a model agrees with itself"):
        audit_points(Explainer(files[0], known, retrain=files[:2], **given), asked, points)


def test_without_models_networks_are_retrained(german, tmp_path):
    folder, *_, found = german
    done = invoke(
        "audit", "--data", folder / "known.csv", "--label", "risk", "--people", folder / "people.csv",
        "--counterfactuals", folder / "points.csv", "--train", "--hidden", "8", "--epochs", 3,
        "--retrain", "seeds:2", "--retrain", "leave-one-out:2", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    saved = load_audit(tmp_path / "holdfast-audit" / "audit")
    assert saved.kinds == ("seeds",) * 2 + ("leave-one-out",) * 2
    assert "not valid for the model" in done.stdout  # they were found for another network
    problems = pd.read_csv(tmp_path / "holdfast-audit" / "problems.csv")
    counts = problems["problem"].value_counts()
    assert counts.get("no counterfactual", 0) == (~found.found).sum()
    assert counts["not valid for the model"] == found.found.sum() - saved.counterfactuals.found.sum()


def test_retrained_networks_are_kept_for_the_next_time_and_points_are_read_first(german, tmp_path, monkeypatch):
    folder, store = german[0], {"HOLDFAST_FAMILIES": str(tmp_path / "families")}
    words = (
        "audit", "--data", folder / "known.csv", "--label", "risk", "--people", folder / "people.csv",
        "--train", "--hidden", "8", "--epochs", 3, "--retrain", "seeds:2", "--retrain", "leave-one-out:2",
    )  # fmt: skip
    (tmp_path / "wrong.csv").write_text("age\n3\n")
    refused = invoke(*words, "--counterfactuals", "wrong.csv", cwd=tmp_path, **store)
    assert refused.returncode == 1
    assert not (tmp_path / "families").exists()  # before the training
    points = ("--counterfactuals", folder / "points.csv")
    assert invoke(*words, *points, cwd=tmp_path, **store).returncode == 0
    first = load_audit(tmp_path / "holdfast-audit" / "audit")
    one_stack = training.train_stack
    sizes = []
    monkeypatch.setattr(training, "train_stack", lambda *job: sizes.append(len(job[-1])) or one_stack(*job))
    assert invoke(*words, *points, cwd=tmp_path, **store).returncode == 0
    assert sizes == []  # neither the deployed network nor the others
    assert torch.equal(load_audit(tmp_path / "holdfast-audit" / "audit").predictions, first.predictions)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--data", "germany"), "no dataset is called 'germany' (there are german, "),
        (("--data", "nowhere.csv"), "there is no file nowhere.csv"),
        (("--data", "{folder}/known.csv"), "needs a label: name its column (--label NAME)"),
        (
            ("--data", "{folder}/known.csv", "--label", "risk"),
            "there is no model; name the file of the deployed model (--model FILE)",
        ),
        (("--data", "german", "--train", "--want", "splendid"), "is called 'splendid'; the classes are"),
        (
            ("--data", "german", "--retrained", "{folder}/people.csv"),
            "name the file of the deployed model (--model FILE)",
        ),
        (
            ("--data", "german", "--retrained", "{folder}/people.csv", "--model", "{folder}/people.csv"),
            "is not a valid safetensors file",
        ),
        (("--data", "german", "--counterfactuals", "{folder}/schema.toml"), "use .csv or .parquet"),
    ],
)
def test_what_cannot_be_done_ends_in_a_sentence_and_writes_nothing(words, message, german, tmp_path):
    folder = german[0]
    given = [str(word).format(folder=folder) for word in words]
    if "--counterfactuals" not in given:
        given += ["--counterfactuals", folder / "points.csv"]
    done = invoke("audit", *given, cwd=tmp_path)
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "holdfast-audit").exists()


def test_rows_that_were_asked_and_not_answered_count_as_not_found(german):
    folder, asked, _, _, found = german
    data = prepare("german")
    points = found.to_frame(data.encoding, asked).iloc[:10]
    given = {"schema": data.schema, "scaling": data.encoding.scaling}
    explainer = Explainer(folder / "family", data.train, retrain=[folder / "family"], **given)
    some = audit_points(explainer, rows_named(data.table, points), points)
    everybody = audit_points(explainer, asked, points)
    assert len(some.audit.counterfactuals) == 10
    assert len(everybody.audit.counterfactuals) == 30
    assert everybody.audit.success == pytest.approx(some.audit.success / 3)
    assert everybody.audit.rate == some.audit.rate


def test_a_family_must_say_which_model_is_deployed(german, tmp_path):
    family = german[3]
    save_family(family[1:], tmp_path / "retrained")
    with pytest.raises(ValueError, match="holds 0 members of kind 'base'"):
        read_deployed(tmp_path / "retrained")
    with pytest.raises(ValueError, match="one folder of a family or of models, or files of models"):
        read_retrained([tmp_path / "retrained", tmp_path / "retrained"])


def test_layers_are_read_in_the_order_of_their_numbers(tmp_path):
    torch.manual_seed(0)
    module = nn.Sequential(*(part for _ in range(11) for part in (nn.Linear(4, 4), nn.ReLU())), nn.Linear(4, 3))
    safetensors.torch.save_file(module.state_dict(), tmp_path / "deep.safetensors")
    x = torch.randn(50, 4)
    torch.testing.assert_close(read_perceptron(tmp_path / "deep.safetensors")(x), module(x))


def test_files_that_are_no_perceptron_are_refused(tmp_path):
    parts = {
        "norm": nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)),
        "fork": nn.ModuleDict({"a": nn.Linear(4, 3), "b": nn.Linear(5, 2)}),
        "bare": nn.Sequential(nn.Linear(4, 2, bias=False)),
    }
    for name, module in parts.items():
        safetensors.torch.save_file(module.state_dict(), tmp_path / f"{name}.safetensors")
        with pytest.raises(ValueError, match=r"does not hold linear layers one after another.*like=module"):
            read_perceptron(tmp_path / f"{name}.safetensors")


LAYERS = {"0.weight": torch.ones(3, 4), "0.bias": torch.ones(3), "2.weight": torch.ones(2, 3), "2.bias": torch.ones(2)}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"0.bias": torch.ones(1)}, r"0\.bias has shape \(1,\), 0\.weight \(3, 4\): \(3,\) fits"),
        ({"2.bias": torch.ones(2, 1)}, r"2\.bias has shape \(2, 1\)"),
        ({"2.bias": torch.tensor(1.0)}, r"2\.bias has shape \(\)"),
        ({"0.weight": torch.ones(3, 0)}, "their weights have the shapes"),
        ({"2.bias": torch.tensor([1.0, torch.nan])}, r"2\.bias holds numbers that are not finite"),
        ({"0.weight": torch.full((3, 4), torch.inf)}, r"0\.weight holds numbers that are not finite"),
        (
            {"0.bias": torch.ones(3, dtype=torch.int64)},
            r"0\.bias is torch\.int64, expected torch\.float32.*module\.float",
        ),
        ({"2.bias": torch.ones(2).half()}, r"2\.bias is torch\.float16"),
        ({"2.weight": torch.ones(2, 3).bfloat16()}, r"2\.weight is torch\.bfloat16"),
        ({name: layer.double() for name, layer in LAYERS.items()}, r"0\.bias is torch\.float64"),
    ],
)
def test_layers_that_do_not_fit_rows_or_one_another_are_refused(tmp_path, changes, says):
    file = tmp_path / "odd.safetensors"
    safetensors.torch.save_file(LAYERS, file)
    assert read_perceptron(file)(torch.ones(5, 4)).shape == (5, 2)
    safetensors.torch.save_file({**LAYERS, **changes}, file)
    with pytest.raises(ValueError, match=f"odd.safetensors.*{says}"):
        read_perceptron(file)


def test_a_file_without_layers_is_refused(tmp_path):
    safetensors.torch.save_file({}, tmp_path / "none.safetensors")
    with pytest.raises(ValueError, match="it holds no tensors"):
        read_perceptron(tmp_path / "none.safetensors")


def test_some_members_in_any_order(german):
    family = german[3]
    x = torch.randn(20, 61)
    turned = family.chosen([4, 1, 6])
    assert turned.kinds == ("seeds",) * 3
    assert torch.equal(turned.predict(x), torch.stack([predict(family[place], x) for place in (4, 1, 6)]))
    assert isinstance(turned, Family)


def test_a_plan_is_a_number_of_networks(tmp_path):
    done = invoke("plan", "--width", 0.05, "--rate", 0.02, "--spread", 0.01, cwd=tmp_path)
    assert done.returncode == 0
    assert int(done.stdout.split()[0]) > 50
    assert "width must lie between 0 and 1" in invoke("plan", "--width", 5, cwd=tmp_path).stderr
