"""Our distances between categories against alibi's own functions, asked in alibi's environment."""

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch

from holdfast import Encoding
from holdfast.datasets import card
from holdfast.search.methods.categories import _company, _placed, _shares, association, value_difference

PYTHON = Path(__file__).parents[2] / ".venv-alibi" / "bin" / "python"
if not PYTHON.exists():
    pytest.skip("alibi is not installed; make .venv-alibi/.installed", allow_module_level=True)

ASK = """
import json, sys
import numpy as np
from alibi.utils.discretizer import Discretizer
from alibi.utils.distance import abdm, multidim_scaling, mvdm
from alibi.utils.mapping import ohe_to_ord

held = np.load(sys.argv[1])
rows, classes = held["rows"], held["classes"]
ordinal, categories = ohe_to_ord(rows, {int(column): int(levels) for column, levels in held["categories"]})
numbers = [column for column in range(ordinal.shape[1]) if column not in categories]
cut = Discretizer(ordinal, numbers, [str(column) for column in range(ordinal.shape[1])], percentiles=[25, 50, 75])
bins = {column: len(cut.feature_intervals[column]) for column in numbers}
pairs = {
    "abdm": abdm(cut.discretize(ordinal), dict(categories), bins),
    "mvdm": mvdm(ordinal, classes, dict(categories)),
}
wide = tuple(np.full((1, ordinal.shape[1]), bound) for bound in (-1.0, 1.0))
told = {}
for name, pair in pairs.items():
    told[name] = [distance.tolist() for distance in pair.values()]
    placed, _ = multidim_scaling(pair, wide, update_feature_range=False)
    told[name + " line"] = [line.tolist() for line in placed.values()]
json.dump(told, open(sys.argv[2], "w"))
"""


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    german = card("german")
    table, schema = german.load()
    encoding = Encoding.fit(table, schema, "none")
    x, classes, space = encoding.encode(table), encoding.labels(table), encoding.space
    folder = tmp_path_factory.mktemp("alibi")
    categories = [(group.columns[0], len(group.columns)) for group in space.groups]
    np.savez(folder / "question.npz", rows=x.double().numpy(), classes=classes.numpy(), categories=categories)
    subprocess.run([PYTHON, "-c", ASK, folder / "question.npz", folder / "answer.json"], check=True)
    return x, classes, space, json.loads((folder / "answer.json").read_text())


@pytest.mark.parametrize("name", ["abdm", "mvdm"])
def test_distances_are_alibis(both, name):
    x, classes, space, told = both
    slots, owner = _company(space, x)
    kinds = torch.eye(2)[classes].double().numpy()
    for place, (group, theirs) in enumerate(zip(space.groups, told[name], strict=True)):
        on = x[:, list(group.columns)].double().numpy()
        ours = (
            value_difference(_shares(on, kinds))
            if name == "mvdm"
            else association(_shares(on, slots[:, owner != place]))
        )
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", ["abdm", "mvdm"])
def test_levels_lie_on_the_line_as_alibi_lays_them(both, name):
    """alibi standardises each line, so only the shape can be compared; two versions of a library made the planes."""
    _, _, _, told = both
    for distance, theirs in zip(told[name], told[name + " line"], strict=True):
        line = _placed(np.array(distance))
        ours = (line - line.mean()) / (line.std() + 1e-12)
        if len(line) > 2:
            assert np.corrcoef(ours, theirs)[0, 1] > 0.99
