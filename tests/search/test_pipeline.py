import pytest
import torch

from holdfast import METHODS, PGD, SNS, STABILISERS, MinCost, Space, make_method, other_class
from holdfast.paper.release import ReleasedSNS
from holdfast.search.pipeline import Pipeline


@pytest.mark.parametrize("stabiliser", STABILISERS)
def test_a_name_is_a_method_and_plus_adds_to_it(stabiliser, family, rows):
    model, x = family[0], rows[0]
    target, space = other_class(model, x), Space.free(x)
    together = make_method(f"min-l2+{stabiliser}")(model, x, target, space)
    apart = STABILISERS[stabiliser]()(model, MinCost(norm=2)(model, x, target, space), space)
    assert torch.equal(together.point, apart.point)
    assert torch.equal(together.found, apart.found)


def test_a_name_stands_for_a_method_with_its_defaults():
    assert make_method("min-l1") == MinCost(norm=1)
    assert make_method("pgd+sns") == Pipeline(PGD(), (SNS(),))
    both = make_method("min-l2+sns+sparse")
    assert [type(stabiliser).__name__ for stabiliser in both.stabilisers] == ["SNS", "Sparse"]


def test_what_is_composed_hands_the_data_on(rows, encoding):
    x, y = rows
    assert make_method("prototype+sns").fit(x, y, encoding.space).method.rows is not None
    fitted = Pipeline(PGD(), (ReleasedSNS(radius=1.0), SNS())).fit(x, y, encoding.space)
    assert torch.equal(fitted.stabilisers[0].low, x.amin(0))
    assert fitted.stabilisers[1] == SNS()


@pytest.mark.parametrize("name", ["", "pgb", "pgd+sms", "sns+pgd", "pgd+"])
def test_a_name_that_does_not_exist_is_refused_with_those_that_do(name):
    with pytest.raises(ValueError, match=r"methods are min-l1, min-l2, pgd.*and \+ adds sns"):
        make_method(name)


def test_every_entry_says_where_it_comes_from():
    for make in (*METHODS.values(), *STABILISERS.values()):
        method = make()
        assert method.source
        assert method.__doc__
        assert hash(method) == hash(make())  # a frozen value
