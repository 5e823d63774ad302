"""A torch module with one logit, trained by your own loop. The same loop retrains it."""

from __future__ import annotations

import torch
from torch import nn

import holdfast as hf

table, schema = hf.load("german")
known, asked = table[:800], table[800:820]
encoding = hf.Encoding.fit(known, schema)
x, y = encoding.encode(known), encoding.labels(known).float()


def train(rows, seed: int) -> nn.Module:
    """A network of these rows of the table, by number."""
    torch.manual_seed(seed)
    network = nn.Sequential(nn.Linear(encoding.width, 32), nn.ReLU(), nn.Linear(32, 1))
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-2)
    for _ in range(60):
        optimiser.zero_grad()
        nn.functional.binary_cross_entropy_with_logits(network(x[rows])[:, 0], y[rows]).backward()
        optimiser.step()
    return network.eval()


deployed = train(range(len(known)), seed=0)
explainer = hf.Explainer(deployed, known, want="good", schema=schema, retrain=(train, hf.seeds(24)))
print(explainer)  # says what its one output was taken for
advice = explainer.explain(asked, hold=0.9)
print(advice)
print(advice.table())
