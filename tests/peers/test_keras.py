"""Our training against Keras, which the paper used, from the same start and on the same batches."""

import os

os.environ["KERAS_BACKEND"] = "tensorflow"  # what the authors used

import keras
import numpy as np
import pytest
import torch

from holdfast import Recipe, Retraining, train

RECIPE = Recipe((16, 8), epochs=5, batch=16)


@pytest.fixture(scope="module")
def data():
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(200, 10, generator=draw)
    return x, (x[:, 0] + x[:, 1] > 0).long()


def model(start):
    net = keras.Sequential(
        [keras.Input((10,)), *(keras.layers.Dense(width, "relu") for width in RECIPE.hidden), keras.layers.Dense(2)]
    )
    net.set_weights([w.numpy() for pair in zip(start.weights, start.biases, strict=True) for w in pair])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    net.compile(optimizer=keras.optimizers.Adam(), loss=loss)
    return net


@pytest.mark.parametrize("change", [Retraining(), Retraining(3, 5), Retraining(left_out=7)])
def test_the_same_network_comes_out(change, data):
    x, y = data
    start = train(x, y, Recipe(RECIPE.hidden, epochs=1, learning_rate=1e-30), [change])[0]
    net = model(start)
    kept = torch.tensor([row for row in range(200) if row != change.left_out])
    draw = torch.Generator().manual_seed(change.order_seed)
    for _ in range(RECIPE.epochs):
        for batch in kept[torch.randperm(len(kept), generator=draw)].split(RECIPE.batch):
            net.train_on_batch(x[batch].numpy(), y[batch].numpy())
    ours = train(x, y, RECIPE, [change])[0]
    for layer, weight, bias in zip(net.layers, ours.weights, ours.biases, strict=True):
        theirs = layer.get_weights()
        # Adam's epsilon stands elsewhere in Keras (before the bias correction), worth about 1e-5, 2e-4 at most, here.
        np.testing.assert_allclose(weight, theirs[0], atol=5e-4)
        np.testing.assert_allclose(bias, theirs[1], atol=5e-4)


def test_the_defaults_are_keras_defaults():
    adam = keras.optimizers.Adam()
    recipe = Recipe()
    assert recipe.learning_rate == pytest.approx(float(adam.learning_rate))
    assert (recipe.betas, recipe.epsilon) == ((adam.beta_1, adam.beta_2), adam.epsilon)
    dense = keras.layers.Dense(300)
    dense.build((None, 200))
    limit = (6 / 500) ** 0.5
    weights = dense.get_weights()[0]
    assert 0.999 * limit < np.abs(weights).max() <= limit
