"""Many networks at once against a plain PyTorch loop that trains them one after another.

Same data, same initial weights, same batches. Ten networks are first trained for 10 epochs by both sides in
float64, where all weights must agree to 1e-6, or the script fails. In float32 a unit whose input lands within a
rounding of ReLU's kink can send the two sides apart, so there the script shows how many of the ten agree to 1e-6.
Then all networks are timed in float32. Ours includes starting its worker processes.
"""

from __future__ import annotations

import torch
from _side_by_side import divided, flags, show, timed
from torch import Tensor, nn

from holdfast import PAPER_RECIPES, Family, Recipe, Retraining, leave_one_out, seeds, train

AGREE = 1e-6


def loop(x: Tensor, y: Tensor, recipe: Recipe, changes: list[Retraining], start: Family) -> list[nn.Sequential]:
    """How one would write it: a module, autograd, torch.optim.Adam, one network after another."""
    return [one(x, y, recipe, change, module(start, place)) for place, change in enumerate(changes)]


def one(x: Tensor, y: Tensor, recipe: Recipe, change: Retraining, net: nn.Sequential) -> nn.Sequential:
    adam = torch.optim.Adam(net.parameters(), lr=recipe.learning_rate, betas=recipe.betas, eps=recipe.epsilon)
    kept = torch.tensor([row for row in range(len(x)) if row != change.left_out])
    draw = torch.Generator().manual_seed(change.order_seed)
    for _ in range(recipe.epochs):
        order = kept[torch.randperm(len(kept), generator=draw)]
        for batch in order.split(recipe.batch):
            adam.zero_grad()
            nn.functional.cross_entropy(net(x[batch]), y[batch]).backward()
            adam.step()
    return net


def module(start: Family, place: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for weight, bias in zip(start[place].weights, start[place].biases, strict=True):
        layer = nn.Linear(*weight.shape, dtype=weight.dtype)
        layer.weight.data, layer.bias.data = weight.T.clone(), bias.clone()
        layers += [layer, nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def initial(x: Tensor, y: Tensor, recipe: Recipe, changes: list[Retraining]) -> Family:
    return train(x, y, Recipe(recipe.hidden, epochs=1, batch=len(x), learning_rate=1e-30), changes)


def differences(x: Tensor, y: Tensor, recipe: Recipe, changes: list[Retraining]) -> list[float]:
    """The largest difference of a weight between the two sides, for each member."""
    family = train(x, y, recipe, changes)
    nets = loop(x, y, recipe, changes, initial(x, y, recipe, changes))
    return [
        max(
            float((layer.weight.detach().T - weight).abs().max())
            for layer, weight in zip(
                (layer for layer in net if isinstance(layer, nn.Linear)), ours.weights, strict=True
            )
        )
        for net, ours in zip(nets, family, strict=True)
    ]


def main() -> None:
    options = flags(__doc__ or "")
    encoding, known, _ = divided("german")
    x, y = encoding.encode(known), encoding.labels(known)

    recipe = PAPER_RECIPES["german"]
    short = Recipe(recipe.hidden, epochs=10, batch=recipe.batch)
    members = 100
    if options.quick:
        members, recipe = 10, short
    rows = []
    for kind, changes in {"seeds": seeds(members), "leave-one-out": leave_one_out(members, len(x))}.items():
        exact = max(differences(encoding.encode(known, torch.float64), y, short, changes[:10]))
        if exact > AGREE:
            raise SystemExit(f"{kind}: the two sides differ by {exact:.2g} after 10 epochs, more than {AGREE}")
        start = initial(x, y, recipe, changes)
        _, ours = timed(lambda changes=changes: train(x, y, recipe, changes))
        _, theirs = timed(lambda changes=changes, start=start: loop(x, y, recipe, changes, start))
        rows.append(
            {
                "dataset": "german",
                "change": kind,
                "members": members,
                "epochs": recipe.epochs,
                "seconds": ours,
                "loop_seconds": theirs,
                "ratio": theirs / ours,
                "float64_difference": exact,
                "float32_agree": sum(gap <= AGREE for gap in differences(x, y, short, changes[:10])),
            }
        )
    show("Training a family: holdfast against a PyTorch loop", rows, options.json)


if __name__ == "__main__":
    main()
