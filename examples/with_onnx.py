"""Models that arrive as ONNX files: the one in use, and those of the last twelve months."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from skl2onnx import to_onnx
from sklearn.neural_network import MLPClassifier

import holdfast as hf

table, schema = hf.load("german")
known, asked = table[:800], table[800:820]
encoding = hf.Encoding.fit(known, schema)
x, y = encoding.encode(known).numpy(), encoding.labels(known).numpy()


def exported(seed: int, folder: Path) -> Path:
    """A network somebody trained and exported; holdfast sees the file alone."""
    network = MLPClassifier((32,), max_iter=60, random_state=seed, early_stopping=True).fit(x, y)
    file = folder / f"model-{seed}.onnx"
    file.write_bytes(to_onnx(network, x[:1].astype(np.float32), options={"zipmap": False}).SerializeToString())
    return file


with TemporaryDirectory() as folder:
    now, *months = [hf.read_model(exported(seed, Path(folder)), encoding) for seed in range(13)]

roles = hf.Sizes(rehearsal=4, selection=4, audit=4)  # which models search, choose and judge
explainer = hf.Explainer(now, known, want="good", schema=schema, retrain=months, sizes=roles)
print(explainer)
advice = explainer.explain(asked, hold=0.75)
print(advice)
print(advice.table())
