"""An audit is loaded as it was saved, and whoever is killed while saving leaves the old one or the new one."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import random
import shutil

import numpy as np
import pandas as pd
import pytest
import torch

from holdfast import PGD, Audit, Counterfactuals, Space, __version__, audit, other_class
from holdfast.auditing.storage import AUDIT, load_audit, save_audit
from holdfast.utils.digests import digest
from killing import calls_of, forks, killed_at, killed_before, posix


def made(dtype=torch.float32, rows=30, members=6, seed=0, classes=3) -> Audit:
    draw = torch.Generator().manual_seed(seed)

    def said(*shape):
        return torch.randint(0, classes, shape, generator=draw)

    origin, point = torch.randn(2, rows, 4, dtype=dtype, generator=draw)
    found, seen = torch.rand(rows, generator=draw) < 0.8, frozenset({"one", "another"})
    answer = Counterfactuals(origin, point, said(rows), found, classes, seen, said(rows))
    kinds = ("seeds",) * (members // 2) + ("leave-one-out",) * (members - members // 2)
    return Audit(said(members, rows), answer, kinds, said(members, rows))


def same(one: Audit, other: Audit) -> bool:
    """To the last bit."""
    mine, its = one.counterfactuals, other.counterfactuals
    tensors = [(getattr(mine, name), getattr(its, name)) for name in ("origin", "point", "target", "found", "before")]
    tensors += [(one.predictions, other.predictions), (one.before, other.before)]
    plain = (one.kinds, mine.classes, mine.seen) == (other.kinds, its.classes, its.seen)
    plain &= (mine.labels is None) == (its.labels is None) and (mine.labels is None or mine.labels.equals(its.labels))
    return plain and all(_same(*pair) for pair in tensors)


def _same(one, other) -> bool:
    if one is None or other is None:
        return one is other
    bits = one.numpy().tobytes() == other.numpy().tobytes()
    return one.dtype == other.dtype and one.shape == other.shape and bits


def without(result: Audit, *, deployed=False, members=False) -> Audit:
    answer = result.counterfactuals
    return dataclasses.replace(
        result,
        counterfactuals=dataclasses.replace(answer, before=answer.before if deployed else None),
        before=result.before if members else None,
    )


def labelled(labels) -> Audit:
    result = made()
    return dataclasses.replace(result, counterfactuals=result.counterfactuals.labelled(labels))


def nothing_found() -> Audit:
    result = made()
    nothing = dataclasses.replace(result.counterfactuals, found=torch.zeros(30, dtype=torch.bool))
    return dataclasses.replace(result, counterfactuals=nothing)


def odd_numbers() -> Audit:
    """Zeros of both signs, numbers that are not, the smallest and the largest, and what is 0.1 in one type alone."""
    result = made(torch.float64, rows=8)
    values = [0.0, -0.0, torch.nan, torch.inf, -torch.inf, 5e-324, 1.7e308, 0.1]
    point = result.counterfactuals.point.clone()
    point[:, 0] = torch.tensor(values, dtype=torch.float64)
    return dataclasses.replace(result, counterfactuals=dataclasses.replace(result.counterfactuals, point=point))


AUDITS = {
    "labels": lambda: labelled(range(100, 130)),
    "labels of text": lambda: labelled([f"person {row // 2}" for row in range(30)]),
    "float32": made,
    "float64": lambda: made(torch.float64),
    "nothing known before": lambda: without(made()),
    "deployed before": lambda: without(made(), deployed=True),
    "members before": lambda: without(made(), members=True),
    "nothing found": nothing_found,
    "one member, one row": lambda: made(rows=1, members=1),
    "no rows": lambda: without(made(rows=0), members=True),
    "many classes": lambda: made(classes=40_000),
    "only what is needed": lambda: Audit(
        torch.tensor([[1, 0]]),
        Counterfactuals(torch.zeros(2, 1), torch.ones(2, 1), torch.ones(2).long(), torch.ones(2).bool()),
        ("größer ‖x‖",),
    ),
    "odd numbers": odd_numbers,
}


@pytest.mark.parametrize("name", AUDITS)
def test_an_audit_is_loaded_as_it_was_saved(name, tmp_path):
    result = AUDITS[name]()
    folder = save_audit(result, tmp_path / "some" / "where")
    back = load_audit(str(folder))
    assert same(back, result)
    np.testing.assert_equal(
        (back.rate, back.interval(), back.baseline_flips), (result.rate, result.interval(), result.baseline_flips)
    )
    assert back.interval_of_new_rows() == result.interval_of_new_rows()
    pd.testing.assert_frame_equal(back.summary(), result.summary())
    assert repr(back) == repr(result)
    assert len(list(folder.iterdir())) == 2
    back.counterfactuals.found[:] = True  # nothing that was read is shared or read-only
    back.predictions[:] = 0


def test_an_audit_of_a_family(family, rows, tmp_path):
    x, _ = rows
    result = audit(PGD(radius=6.0)(family[0], x, other_class(family[0], x), Space.free(x)), family[1:])
    back = load_audit(save_audit(result, tmp_path))
    assert same(back, result)
    with pytest.raises(ValueError, match="networks that the search has seen"):
        audit(back.counterfactuals, family[:3])
    assert audit(back.counterfactuals, family[1:]).rate == result.rate


def test_rows_out_of_order_and_gradients_are_no_hindrance(tmp_path):
    result = made()
    answer = dataclasses.replace(result.counterfactuals, origin=torch.randn(4, 30).T, point=torch.randn(30, 8)[:, ::2])
    turned = dataclasses.replace(result, counterfactuals=answer, predictions=torch.randint(0, 3, (30, 6)).T)
    back = load_audit(save_audit(turned, tmp_path))
    assert torch.equal(back.counterfactuals.origin, answer.origin)
    assert torch.equal(back.counterfactuals.point, answer.point)
    assert torch.equal(back.predictions, turned.predictions)
    wanting = dataclasses.replace(result.counterfactuals, point=result.counterfactuals.point.clone().requires_grad_())
    assert same(load_audit(save_audit(dataclasses.replace(result, counterfactuals=wanting), tmp_path)), result)


def test_a_person_understands_the_table(tmp_path):
    result = made(members=2, rows=5)
    (file,) = save_audit(result, tmp_path).glob("*.parquet")
    table = pd.read_parquet(file)
    assert list(table.columns) == [
        *(f"{name}_{column}" for name in ("origin", "point") for column in range(4)),
        "target", "found", "before", "member_0", "member_1", "member_0_before", "member_1_before",
    ]  # fmt: skip
    assert table["origin_1"].dtype == np.float32
    assert table["found"].dtype == bool
    assert [str(table[name].dtype) for name in ("target", "before", "member_0")] == ["int8", "Int8", "int8"]
    assert table["member_1_before"].tolist() == result.before[1].tolist()
    invalidated = (table["member_0"] != table["target"])[table["found"]].mean()
    assert invalidated == result.of("seeds").rate
    many = pd.read_parquet(next(save_audit(made(classes=200), tmp_path).glob("*.parquet")))
    assert many["member_0"].dtype == np.int16
    bare = pd.read_parquet(next(save_audit(without(result), tmp_path).glob("*.parquet")))
    assert bare["before"].isna().all()
    assert "member_0_before" not in bare


def test_the_description_is_read_alone(tmp_path):
    result = made()
    about = json.loads((save_audit(result, tmp_path) / "audit.json").read_text())
    (file,) = tmp_path.glob("*.parquet")
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    assert file.name == about["file"] == f"audit-{digest[:20]}.parquet"
    assert about["sha256"] == digest
    assert (about["holdfast"], about["format"], about["version"]) == ("audit", AUDIT.format, __version__)
    assert (about["rows"], about["columns"], about["classes"]) == (30, 4, 3)
    assert tuple(about["kinds"]) == result.kinds
    assert about["seen"] == ["another", "one"]
    assert [line["change"] for line in about["summary"]] == ["seeds", "leave-one-out"]
    assert about["summary"][0]["rate"] == result.of("seeds").rate
    text = (save_audit(nothing_found(), tmp_path) / "audit.json").read_text()
    assert "NaN" not in text
    assert json.loads(text)["summary"][0]["rate"] is None


def test_saving_again_leaves_the_new_one_alone(tmp_path):
    first, second = made(), made(torch.float64, seed=1)
    save_audit(first, tmp_path)
    (old,) = tmp_path.glob("*.parquet")
    own = tmp_path / "audit-of-mine.parquet"
    own.write_text("not to be touched")
    (tmp_path / ".audit-0123.parquet.0123456789abcdef.part").write_text("a killed writer's")
    (tmp_path / ("audit-" + "0" * 20 + ".parquet")).write_text("a killed sweeper's")
    save_audit(second, tmp_path)
    assert same(load_audit(tmp_path), second)
    assert not old.exists()
    assert sorted(path.name for path in tmp_path.iterdir() if path != own) == [
        json.loads((tmp_path / "audit.json").read_text())["file"],
        "audit.json",
    ]
    assert own.exists()
    save_audit(second, tmp_path)
    assert same(load_audit(tmp_path), second)


def test_the_same_audit_gives_the_same_bytes(tmp_path):
    for name in ("one", "other"):
        save_audit(made(), tmp_path / name)
    one, other = ({p.name: p.read_bytes() for p in (tmp_path / name).iterdir()} for name in ("one", "other"))
    assert one == other


# ---- what is not an audit ----


def _edited(**changes):
    """What makes a description say something else, under a checksum that fits."""

    def edit(folder):
        about = json.loads((folder / "audit.json").read_text()) | changes
        del about["checksum"]
        (folder / "audit.json").write_text(json.dumps(about | {"checksum": digest(about)}))

    return edit


def _edited_by_hand(folder):
    text = (folder / "audit.json").read_text()
    (folder / "audit.json").write_text(text.replace('"leave-one-out"', '"leave-ten-out"'))


def _file(folder):
    (file,) = folder.glob("*.parquet")
    return file


def _flipped(whole):
    return whole[:-40] + bytes([whole[-40] ^ 1]) + whole[-39:]


def _swapped(folder):
    other = save_audit(made(seed=1), folder / "other")
    shutil.copy(_file(other), _file(folder))


def _pointing_elsewhere(folder):
    """A file of another audit that is whole, named by its own digest, with a description that was bent towards it."""
    other = json.loads((save_audit(made(rows=29), folder / "other") / "audit.json").read_text())
    shutil.copy(_file(folder / "other"), folder / other["file"])
    _edited(file=other["file"], sha256=other["sha256"])(folder)


DAMAGE = {
    "no folder": (shutil.rmtree, FileNotFoundError, "there is no folder .*saved; name a folder that save_audit"),
    "no description": (lambda f: (f / "audit.json").unlink(), FileNotFoundError, "there is no audit.json in .*saved"),
    "no table": (lambda f: _file(f).unlink(), FileNotFoundError, "audit.json names audit-.*, which is missing"),
    "cut table": (
        lambda f: _file(f).write_bytes(_file(f).read_bytes()[:-10]),
        ValueError,
        r"audit-\w+.parquet is not the file .*changed or cut short\): expected the sha256 \w{64}, got \w{64}; copy",
    ),
    "empty table": (lambda f: _file(f).write_bytes(b""), ValueError, "changed or cut"),
    "flipped bit": (
        lambda f: _file(f).write_bytes(_flipped(_file(f).read_bytes())),
        ValueError,
        "changed or cut",
    ),
    "swapped table": (_swapped, ValueError, "changed or cut"),
    "table of another": (_pointing_elsewhere, ValueError, "has 29 rows and 23 columns, .* says 30 and 23"),
    "newer format": (
        _edited(format=AUDIT.format + 1, version="9.0"),
        ValueError,
        f"has format {AUDIT.format + 1}, written by holdfast 9.0; this version reads up to format {AUDIT.format}:",
    ),
    "no end of columns": (
        _edited(columns=10**12),
        ValueError,
        r"has 30 rows and 23 columns, .* says 30 and 2000000000015",
    ),
    "edited by hand": (_edited_by_hand, ValueError, "not a valid audit description: its checksum"),
    "unknown format": (_edited(format="new"), ValueError, "is not a valid audit description"),
    "a family's": (_edited(holdfast="family"), ValueError, "is not a valid audit description"),
    "no JSON": (lambda f: (f / "audit.json").write_bytes(b"\xff{"), ValueError, "is not a valid audit description"),
    "a list": (lambda f: (f / "audit.json").write_text("[1]"), ValueError, "is not a valid audit description"),
    "half": (
        lambda f: (f / "audit.json").write_text('{"holdfast": "audit", "format": 1}'),
        ValueError,
        "is not a valid audit description",
    ),
    "a path": (_edited(file="../other.parquet"), ValueError, "is not a valid audit description"),
    "a kind too few": (_edited(kinds=["seeds"] * 5), ValueError, "says 30 and 21 .differing: member_5, member_5_"),
    "kinds of numbers": (_edited(kinds=[1] * 6), ValueError, "is not a valid audit description"),
    "rows": (_edited(rows=31), ValueError, "has 30 rows .* says 31"),
    "columns": (_edited(columns=3), ValueError, "differing: origin_3, point_3"),
    "classes": (_edited(classes="three"), ValueError, "is not a valid audit description"),
    "before": (_edited(before_known=None), ValueError, "is not a valid audit description"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_what_is_not_whole_is_named_and_not_used(damage, tmp_path):
    spoil, error, message = DAMAGE[damage]
    folder = save_audit(made(), tmp_path / "saved")
    assert same(load_audit(folder), made())
    spoil(folder)
    with pytest.raises(error, match=message):
        load_audit(folder)
    assert same(load_audit(save_audit(made(seed=2), folder)), made(seed=2))  # saving again mends it


@pytest.mark.parametrize(
    ("spoil", "error", "message"),
    [
        (lambda a: a.counterfactuals, TypeError, "expected an Audit, got Counterfactuals"),
        (
            lambda a: dataclasses.replace(
                a, counterfactuals=dataclasses.replace(a.counterfactuals, point=a.counterfactuals.point.bfloat16())
            ),
            ValueError,
            "point must be float32 or float64 .* got torch.bfloat16",
        ),
        (lambda a: dataclasses.replace(a, predictions=a.predictions + 0.5), ValueError, "predictions must be class"),
    ],
)
def test_what_cannot_be_saved_is_refused_and_the_old_one_stays(spoil, error, message, tmp_path):
    save_audit(made(), tmp_path)
    with pytest.raises(error, match=message):
        save_audit(spoil(made(seed=1)), tmp_path)
    assert same(load_audit(tmp_path), made())


# ---- killed ----


def _save_in_turn(audits, folder, times):
    for _ in range(times):
        for result in audits:
            save_audit(result, folder)


@posix
@forks
def test_killed_at_random_moments_it_leaves_the_old_one_or_the_new_one(tmp_path):
    valid = [made(), made(torch.float64, seed=1)]
    both, moments, seen = calls_of(_save_in_turn, valid, tmp_path, 1), random.Random(0), []
    for _ in range(12):
        assert killed_at(moments.randrange(both // 4, 3 * both), _save_in_turn, valid, tmp_path, 10)
        left = load_audit(tmp_path)
        seen.append([same(left, result) for result in valid])
        assert sum(seen[-1]) == 1
    assert any(first for first, _ in seen)  # so the processes did save
    save_audit(valid[0], tmp_path)
    assert len(list(tmp_path.iterdir())) == 2  # the next to save sweeps


@posix
@forks
def test_killed_before_each_file_operation_it_leaves_the_old_one_or_the_new_one(tmp_path):
    old, new = made(), made(torch.float64, seed=1)
    left = []
    for moment in range(100):
        folder = save_audit(old, tmp_path / str(moment))
        killed = killed_before(moment, folder, save_audit, new, folder)
        back = load_audit(folder)
        left.append("new" if same(back, new) else "old" if same(back, old) else "neither")
        assert same(load_audit(save_audit(new, folder)), new)
        assert len(list(folder.iterdir())) == 2
        if not killed:
            break
    assert not killed
    assert len(left) > 6
    assert left == sorted(left, reverse=True)  # old, old, ..., new, new: once there it stays
    assert set(left) == {"old", "new"}
    assert left.count("new") >= 2  # also when killed before the old table is removed
