import pytest
import torch

from holdfast import merged, predict

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
