"""What kernels say of a point is what the models say of it, and asking that stops early decides as asking everybody."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from grown_trees import ENCODING as TREES
from grown_trees import deployed, grown
from holdfast import Family, Recipe, Rehearsed, Space, other_class, seeds, train
from holdfast.models.abilities import able
from holdfast.models.parts import Dense, LevelTable
from holdfast.models.scores import margin
from holdfast.models.worst_case import WorstCaseEnsemble
from holdfast.search.engine.board import board_of, persons_of
from holdfast.search.engine.compiled import entry
from holdfast.search.engine.crowd import crowd_of
from holdfast.search.engine.goals import CHEAPEST
from holdfast.search.engine.moves import move_one, move_two, place_at, price
from holdfast.search.engine.references import reference
from holdfast.search.engine.scorers import begin_order, models_of, stand_at, sure
from holdfast.search.engine.world import World, room_of, score_after


@entry
def scores(world, room, target, features, values, bounds, found, costs):
    """The score after one move of each person from home, or whatever is said where it is not above the bound."""
    known, desk = reference(world), reference(room)
    for row in range(len(features)):
        begin_order(known.models, desk.standing)
        place_at(known, row, desk.state, known.persons.origin[row])
        stand_at(known.models, desk.standing, desk.state)
        if not move_one(known, desk, row, features[row], values[row]):
            found[row] = np.nan
            continue
        costs[row] = price(known, row, features[row], values[row])
        found[row] = sure(known.models, desk.standing, desk.state, desk.move, target[row], bounds[row])


@entry
def sweeps(world, room, pairs, values, found, points):
    """The scores of one person from home after every move of two features: pairs (m, 2) to values (m, 2)."""
    known, desk = reference(world), reference(room)
    state, move = desk.state, desk.move
    begin_order(known.models, desk.standing)
    place_at(known, 0, state, known.persons.origin[0])
    stand_at(known.models, desk.standing, state)
    for turn in range(len(pairs)):
        (first, second), (first_value, second_value) = pairs[turn], values[turn]
        if not move_two(known, desk, 0, first, first_value, second, second_value):
            continue
        found[turn] = score_after(known, desk, -np.inf)
        points[turn] = state.point
        for at in range(move.counts[1]):
            points[turn, move.columns[at]] = move.after[at]


def world_of(board, rules, models, persons, target=0) -> World:
    return World(board, rules, models, crowd_of(None, target, board), persons, target, CHEAPEST)


def moved_rows(space: Space, x: Tensor, board, persons, seed: int):
    """One free feature of everybody at another of its values, and the rows then."""
    draw, point = np.random.default_rng(seed), x.clone()
    features, values = np.zeros(len(x), np.int64), np.zeros(len(x))
    for row in range(len(x)):
        free = np.flatnonzero(persons.ranges[row]["free"])
        place = int(draw.choice(free))
        feature, limits = board.features[place], persons.ranges[row, place]
        features[row] = place
        if feature["is_group"]:
            levels = np.flatnonzero(persons.levels[row, feature["group"], : feature["size"]])
            level = int(draw.choice(levels[levels != limits["home"]]))
            values[row] = level
            columns = board.columns_of_groups[feature["first"] : feature["first"] + feature["size"]]
            point[row, columns] = space.lower[columns]
            point[row, columns[level]] = space.upper[columns[level]]
        else:
            index = int(draw.integers(limits["first"], limits["last"] + 1))
            step = feature["step"] if feature["step"] > 0 else (limits["high"] - limits["low"]) / (1 << 16)
            shift, scale = (feature["shift"], feature["scale"]) if feature["step"] > 0 else (-limits["low"], 1.0)
            values[row] = np.float32((index * step - shift) / scale)
            point[row, feature["column"]] = float(values[row])
    return features, values, point


@pytest.mark.parametrize(
    "settings",
    [{}, {"share": 0.6}, {"temperature": 0.5}, {"share": 0.7, "temperature": 0.3}, {"margin": 0.2}],
    ids=str,
)
def test_a_score_is_what_the_models_say_together(family, rows, encoding, settings):
    model, x = family[0], rows[0]
    space = encoding.space.without_people().to(x)
    target = other_class(model, x)
    together = Rehearsed(family[1:], **settings).worst_case(model)
    found, full, _, _ = asked(together, space, x, target, seed=1, bound=-np.inf)
    torch.testing.assert_close(torch.from_numpy(found), full, atol=2e-4, rtol=2e-4)
    for bound in (-1.0, 0.0, 0.3, 1.0):  # what stops early decides the same
        early, full, _, _ = asked(together, space, x, target, seed=2, bound=bound)
        clear = (full - bound).abs() > 1e-3
        assert ((torch.from_numpy(early) > bound) == (full > bound))[clear].all()


@pytest.mark.parametrize("settings", [{}, {"temperature": 0.5}, {"share": 0.7, "margin": 0.1}], ids=str)
@pytest.mark.parametrize("mixed", [False, True])
def test_trees_and_networks_together_say_what_each_of_them_says(settings, mixed):
    """Trees of logits and of probabilities, whose columns have missing numbers, and networks beside them."""
    table = TREES.known
    x, space = TREES.encode(table), TREES.space.without_people()
    ensembles = [grown(seed, trees=9, used=6, link=link) for seed, link in enumerate(("logit", "probability") * 3)]
    members = [deployed(ensemble) for ensemble in ensembles]
    if mixed:
        networks = train(x, TREES.labels(table), Recipe((5,), epochs=3), seeds(4))
        members = [networks[0], *members[:3], *(networks[place] for place in (1, 2, 3))]
    model, *others = members
    together = Rehearsed(Family.from_models(others), **settings).worst_case(model)
    target = other_class(model, x)
    found, full, _, _ = asked(together, space.to(x), x, target, seed=5, bound=-np.inf)
    there = ~np.isnan(found)
    assert there.mean() > 0.8
    torch.testing.assert_close(torch.from_numpy(found)[there], full[there], atol=2e-4, rtol=2e-4)
    for bound in (-0.5, 0.0, 0.5):
        early, full, _, _ = asked(together, space.to(x), x, target, seed=6, bound=bound)
        clear = ((full - bound).abs() > 1e-3) & ~torch.from_numpy(early).isnan()
        assert ((torch.from_numpy(early) > bound) == (full > bound))[clear].all()


@pytest.mark.parametrize("split", [0, -1])
def test_a_split_that_tells_only_missing_numbers_apart(split):
    """Every number goes left, or right, whatever it is; a missing one the other way."""
    names = [feature.name for feature in TREES.schema.features]
    place, plain = names.index("rating"), grown(3, trees=9, used=6)
    free = plain.feature == place
    root = np.isin(np.arange(len(plain.feature)), plain.roots) | free
    ensemble = replace(
        plain,
        edges=tuple(np.empty(0) if at == place else own for at, own in enumerate(plain.edges)),
        feature=np.where(root, place, plain.feature).astype(np.int32),
        split=np.where(root, split, plain.split).astype(np.int32),
        missing_left=np.where(root, split < 0, plain.missing_left),
    )
    model = deployed(ensemble)
    x, space = TREES.encode(TREES.known), TREES.space.without_people()
    together = Rehearsed(Family.from_models([deployed(grown(4, trees=9, used=6))])).worst_case(model)
    found, full, _, _ = asked(together, space.to(x), x, other_class(model, x), seed=5, bound=-np.inf)
    there = ~np.isnan(found)
    assert there.mean() > 0.8
    torch.testing.assert_close(torch.from_numpy(found)[there], full[there], atol=2e-4, rtol=2e-4)


def test_sweeps_of_a_feature_beside_another_say_what_the_trees_say():
    """Many values of one feature, one after another, while a second one has moved too."""
    x, space = TREES.encode(TREES.known)[:20], TREES.space.without_people()
    model, *others = (deployed(grown(seed, trees=9, used=6)) for seed in range(4))
    together = Rehearsed(Family.from_models(others)).worst_case(model)
    draw = np.random.default_rng(0)
    for row in range(len(x)):
        own, target = space.to(x), other_class(model, x)[row]
        board, rules = board_of(own, 1)
        models = models_of(able(together).parts, board, together.needed)
        persons = persons_of(own, x[row : row + 1], board)
        numbers = [place for place, feature in enumerate(board.features) if not feature["is_group"]]
        pairs, values = [], []
        for one, two in draw.permuted(numbers * 4).reshape(-1, 2):
            if one != two and all(persons.ranges[0, place]["free"] for place in (one, two)):
                low, high = (persons.ranges[0, two][name] for name in ("low", "high"))
                first = persons.ranges[0, one]["high" if draw.random() < 0.5 else "home"]
                for value in draw.uniform(low, high, 12).astype(np.float32):
                    pairs.append((one, two))
                    values.append((first, value))
        found, points = np.full(len(pairs), np.nan), np.zeros((len(pairs), x.shape[1]))
        world = world_of(board, rules, models, persons, int(target))
        sweeps(world, room_of(world), np.array(pairs), np.array(values), found, points)
        there = ~np.isnan(found)
        assert there.any()
        with torch.no_grad():
            full = margin(together, torch.from_numpy(points[there]).to(x), target.expand(int(there.sum()))).double()
        torch.testing.assert_close(torch.from_numpy(found[there]), full, atol=1e-5, rtol=1e-5)


def asked(together: WorstCaseEnsemble, space: Space, x: Tensor, target: Tensor, seed: int, bound: float, norm: int = 1):
    board, rules = board_of(space, norm)
    models = models_of(able(together).parts, board, together.needed, together.margin, together.temperature)
    persons = persons_of(space, x, board)
    features, values, point = moved_rows(space, x, board, persons, seed)
    found, costs = np.zeros(len(x)), np.zeros(len(x))
    world = world_of(board, rules, models, persons)
    scores(world, room_of(world), target.numpy(), features, values, np.full(len(x), bound), found, costs)
    with torch.no_grad():
        full = margin(together, point, target).double()
    return found, full, costs, point


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("scale", ["encoded", "percentile"])
def test_a_move_costs_what_the_space_says(family, rows, encoding, norm, weighted, scale):
    space, x = encoding.space, rows[0]
    if weighted:
        draw = torch.Generator().manual_seed(0)
        space = space._with(weight=torch.rand(space.width, generator=draw) + 0.5)
    if scale == "percentile":
        draw = torch.Generator().manual_seed(1)
        space = space._with(quantiles=torch.quantile(x, torch.linspace(0, 1, 101), dim=0))
    space = space.without_people().to(x)
    together = Rehearsed(family[1:]).worst_case(family[0])
    found, _, costs, point = asked(together, space, x, other_class(family[0], x), 3, -np.inf, norm)
    expected = (space.moved(point, x).double() ** norm).sum(1).numpy()
    there = ~np.isnan(found)
    np.testing.assert_allclose(costs[there], expected[there], rtol=2e-4, atol=2e-5)


def test_a_member_that_answers_nan_agrees_with_nothing(family, rows, encoding):
    broken = Dense(*family[1].parts[0].__dict__.values())
    broken = Dense(broken.weights, (*broken.biases[:-1], np.full_like(broken.biases[-1], np.nan)), "relu", (0, 1))
    x, space = rows[0], encoding.space.without_people()
    board, rules = board_of(space.to(x), 1)
    models = models_of((family[0].parts[0], broken), board, 1)
    persons = persons_of(space.to(x), x, board)
    features, values, _ = moved_rows(space.to(x), x, board, persons, 4)
    found, world = np.zeros(len(x)), world_of(board, rules, models, persons)
    target = np.zeros(len(x), np.int64)
    scores(world, room_of(world), target, features, values, np.full(len(x), -np.inf), found, found.copy())
    assert (np.isnan(found) | (found == -np.inf)).all()


def test_one_output_is_the_log_odds_of_the_second_class():
    table = LevelTable(0.0, 1.0, np.array([[0.0], [3.0]]))
    own = Dense.of([torch.tensor([[2.0], [0.0]])], [torch.tensor([0.5])], "identity", tables={1: table})
    assert own.biases[0].tolist() == [-0.25, 0.25]
    assert own.tables[1].rows.tolist() == [[0.0, 0.0], [-1.5, 1.5]]
    assert own.classes == (0, 1)


def test_a_family_of_own_modules_has_no_layers_to_search():
    assert able(Family.from_models([lambda x: x, lambda x: x])[0]).parts is None
