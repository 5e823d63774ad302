"""How much SNS's three settings matter: each varied alone around the paper's values, from PGD's counterfactuals.

    radius  of the ball around the start, as a share of PGD's largest ε (the paper's: 0.8)
    points  on the line from zero that the integral is taken over                  (10)
    steps   uphill                                                                 (200)

A method's name says what was varied, "pgd+sns:radius=0.4", and `setting` reads it off again. The paper's own values are
one of each setting's, so that each has a whole curve; they are searched for once.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from holdfast.paper.declared import PAPER_DATASETS, RADII, SNS_SHARE, pgd, sns
from holdfast.paper.study import Study
from holdfast.search.pipeline import Pipeline
from holdfast.search.stabilisers.sns import SNS

START = "pgd"
VALUES: dict[str, tuple[float, ...]] = {
    "radius": (0.1, 0.2, 0.4, 0.6, 0.8, 1.0),
    "points": (1, 2, 5, 10, 20),
    "steps": (10, 50, 100, 200, 400),
}
PAPERS_VALUES = {"radius": SNS_SHARE, "points": 10, "steps": 200}


class Setting(NamedTuple):
    name: str  # of `VALUES`
    value: float


def method_name(varied_setting: Setting) -> str:
    return f"{START}+sns:{varied_setting.name}={varied_setting.value:g}"


def setting(method: str) -> Setting | None:
    """What a method's name says was varied; None for the start, or any other method."""
    _, _, words = method.partition("+sns:")
    name, _, value = words.partition("=")
    return Setting(name, float(value)) if name in VALUES and value else None


def varied(dataset: str, varied_setting: Setting) -> SNS:
    """The paper's SNS for that dataset, but for one setting."""
    value: Any = varied_setting.value * RADII[dataset] if varied_setting.name == "radius" else int(varied_setting.value)
    return replace(sns(dataset), **{varied_setting.name: value})


SETTINGS = tuple(Setting(name, value) for name, values in VALUES.items() for value in values)

SENSITIVITY = Study(
    name="sensitivity",
    datasets=PAPER_DATASETS,
    methods=(
        (START, pgd),
        *(
            (method_name(one), lambda dataset, one=one: Pipeline(pgd(dataset), (varied(dataset, one),)))
            for one in SETTINGS
        ),
    ),
    changes=(("seeds", 100),),
    rows=200,
    settings="text",
)

# German alone: its data ship with the package, and one core needs half a minute.
QUICK = replace(SENSITIVITY, name="sensitivity-quick", datasets=("german",))
