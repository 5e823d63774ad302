"""A search works on one thread, however many rows it has: more of them would change some bits."""

from __future__ import annotations

import pandas as pd
import pytest
import torch

from holdfast import PGD, SNS, Confidence, Explainer, MinCost, Recipe, Retraining, Space, changes, other_class, train
from holdfast.search.pipeline import Pipeline
from holdfast.utils.threads import one_thread
from killing import FORK, forks, posix
from loans import applicants, model, schema, train_rows

LONG = 120  # seconds that a forked process may take for what takes two
X = torch.randn(20_000, 60, generator=torch.Generator().manual_seed(0))
MODEL = train(X[:300], (X[:300, 0] > 0).long(), Recipe((8,), epochs=1), [Retraining()])[0]


@pytest.fixture
def four_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    yield
    torch.set_num_threads(before)


SEARCHES = {
    "min-l1": MinCost(norm=1, steps=1, constants=1),
    "min-l2": MinCost(steps=1, constants=1),
    "pgd": PGD(steps=1, levels=1),
    "pgd+sns": Pipeline(PGD(steps=1, levels=1), (SNS(steps=1, points=2),)),
    "pgd+confidence": Pipeline(PGD(steps=1, levels=1), (Confidence(steps=1),)),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name.startswith("min") else name for name in SEARCHES]
)
def test_the_model_is_asked_on_one_thread(name, four_threads):
    asked_on = []

    def model(x):  # tried on a row or two first
        asked_on.append((torch.get_num_threads(), len(x)))
        return MODEL(x)

    SEARCHES[name](model, X, other_class(MODEL, X), Space.free(X))
    assert {threads for threads, rows in asked_on if rows > 100} == {1}
    assert torch.get_num_threads() == 4


def test_the_number_of_threads_comes_back_whatever_happens(four_threads):
    with pytest.raises(KeyboardInterrupt), one_thread():
        raise KeyboardInterrupt
    assert torch.get_num_threads() == 4


@posix
@forks
@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_forked_process_explains_as_the_one_it_comes_from(four_threads, workers):
    explainer = Explainer(
        model(), train_rows(), want="yes", schema=schema(), retrain=changes.bootstrap(3), workers=workers
    )
    said = explainer.explain(applicants(3), hold=0.5).wide()
    torch.sin(X)  # all threads of this process have worked: a forked one has none of them
    child = FORK.Process(target=lambda: _expect(said, explainer))
    child.start()
    child.join(LONG)
    if child.exitcode is None:
        child.kill()  # this process alone, by its id
        pytest.fail(f"a forked process did not end in {LONG} s")
    assert child.exitcode == 0


def _expect(said, explainer):
    torch.sin(X)
    pd.testing.assert_frame_equal(explainer.explain(applicants(3), hold=0.5).wide(), said)
