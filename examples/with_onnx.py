"""A model that arrives as an ONNX file: asked by onnxruntime, searched by gradient."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from skl2onnx import to_onnx
from sklearn.neural_network import MLPClassifier

import holdfast as hf

table, schema = hf.load("german")
known, asked = table[:800], table[800:]
encoding = hf.Encoding.fit(known, schema)
x, y = encoding.encode(known).numpy(), encoding.labels(known).numpy()


def exported(seed: int, folder: Path) -> Path:
    """A network somebody trained and exported; holdfast sees the file alone."""
    network = MLPClassifier((32,), max_iter=60, random_state=seed, early_stopping=True).fit(x, y)
    file = folder / f"model-{seed}.onnx"
    file.write_bytes(to_onnx(network, x[:1].astype(np.float32), options={"zipmap": False}).SerializeToString())
    return file


with TemporaryDirectory() as folder:
    models = [hf.read_model(exported(seed, Path(folder)), encoding) for seed in range(5)]
model = models[0]
print(model)
people = encoding.encode(asked)
refused = people[hf.predict(model, people) == schema.classes.index("bad")]
found = hf.MinCost(norm=1)(model, refused, encoding.target("good", len(refused)), encoding.space)
print(hf.audit(found, hf.Family.from_models(models[1:], kind="seeds")))
