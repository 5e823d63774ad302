import pytest
import torch
from torch import nn

from holdfast import other_class, predict
from holdfast.models.merged import merged
from holdfast.models.model import check_model

LOGITS = torch.tensor([[3.0, 1, 2], [1, 3, 2], [1, 2, 3], [2.5, 2, 2]])


def test_merged_takes_the_largest_logit_of_each_group():
    model = merged(lambda x: LOGITS, ((0,), (1, 2)))
    assert model(torch.zeros(4, 1)).tolist() == [[3, 2], [1, 3], [1, 3], [2.5, 2]]
    assert predict(model, torch.zeros(4, 1)).tolist() == [0, 1, 1, 0]


@pytest.mark.parametrize("groups", [((0, 1, 2),), ((0,), (0, 1)), ((0,), (2,)), ((0, 1), ())])
def test_groups_must_share_out_the_classes(groups):
    with pytest.raises(ValueError, match="must share out the classes"):
        merged(lambda x: LOGITS, groups)


def test_groups_must_fit_the_model():
    with pytest.raises(ValueError, match="share out 2 classes but the model has 3"):
        merged(lambda x: LOGITS, ((0,), (1,)))(torch.zeros(4, 1))


ROWS = torch.zeros(4, 3)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (lambda r: r[:, :1], r"gave \(4, 1\) for 4 rows.*torch\.cat\(\[-z, z\], 1\) / 2 if z is \(n, 1\)"),
        (lambda r: r[:, 0], r"gave \(4,\) for 4 rows.*torch\.stack"),
        (lambda r: r[:1, :2], r"gave \(1, 2\) for 4 rows"),
        (lambda r: r[:, :2].tolist(), "gave list for 4 rows"),
    ],
)
def test_what_is_not_logits_is_refused_everywhere(model, message):
    for use in (predict, other_class, check_model):
        with pytest.raises(ValueError, match=message):
            use(model, ROWS)


def test_single_logits_wrapped_as_the_message_says_are_two_classes():
    for z, wrap in [(torch.tensor([[2.0], [-1.0]]), torch.cat), (torch.tensor([2.0, -1.0]), torch.stack)]:
        logits = wrap([-z, z], 1) / 2
        assert logits.softmax(-1)[:, 1].tolist() == pytest.approx(torch.sigmoid(z.flatten()).tolist())


def test_models_that_cannot_be_searched_are_refused_with_the_reason():
    class Forest:
        def predict_proba(self, x):
            return x

    with pytest.raises(TypeError, match="the model is a Forest, which cannot be called"):
        check_model(Forest(), ROWS)
    with pytest.raises(ValueError, match="no gradient; gradient searches need a model written in torch"):
        check_model(lambda r: torch.from_numpy(r.detach().numpy()[:, :2]), ROWS)
    with pytest.raises(ValueError, match=r"does not take rows of 3 columns \(torch.float32\)"):
        check_model(nn.Linear(5, 2), ROWS)
    with pytest.raises(ValueError, match=r"call model\.eval"):
        check_model(nn.Sequential(nn.Linear(3, 2), nn.Dropout()), ROWS)
    assert check_model(nn.Sequential(nn.Linear(3, 4), nn.Dropout()).eval(), ROWS) == 4
    assert check_model(nn.Linear(3, 2), ROWS) == 2


def test_probabilities_where_logits_should_be_are_warned_of():
    with pytest.warns(UserWarning, match=r"outputs are probabilities.*leave out its softmax"):
        check_model(nn.Sequential(nn.Linear(3, 2), nn.Softmax(-1)), torch.randn(20, 3))
