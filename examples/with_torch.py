"""A torch module with one logit, trained by your own loop, and retrained by holdfast."""

from __future__ import annotations

import torch
from torch import nn

import holdfast as hf

table, schema = hf.load("german")
known, asked = table[:800], table[800:]
encoding = hf.Encoding.fit(known, schema)
x, y = encoding.encode(known), encoding.labels(known)

torch.manual_seed(0)
network = nn.Sequential(nn.Linear(encoding.width, 32), nn.ReLU(), nn.Linear(32, 1))
optimiser = torch.optim.Adam(network.parameters(), lr=1e-2)
for _ in range(60):
    optimiser.zero_grad()
    nn.functional.binary_cross_entropy_with_logits(network(x)[:, 0], y.float()).backward()
    optimiser.step()

model = hf.as_model(network.eval(), encoding)
print(model)  # says what its one output was taken for
people = encoding.encode(asked)
refused = people[hf.predict(model, people) == schema.classes.index("bad")]
wanted = encoding.target("good", len(refused))
found = hf.named("min-l1+sns")(model, refused, wanted, encoding.space)

# The same layers with two logits, trained again with other seeds: another loop than yours, and the audit says so
# where such models do not resemble yours.
recipe = hf.Recipe(
    epochs=60, batch=800, learning_rate=1e-2, network=nn.Sequential(*network[:2], nn.Linear(32, len(schema.classes)))
)
family = hf.train(x, y, recipe, hf.seeds(20))
print(hf.audit(found, family))
