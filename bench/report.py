"""A report for many people: how large its file is, how long it takes to write, and how soon a reader sees a card.

HELOC. Real advice is searched for 200 people: three plans each by `min-l1`, in the schema space, audited by 32
networks that were trained again. Those who have three plans are repeated under new labels until there are as many
people as are asked for, so values repeat more often than among as many different people.

    different   people whose values differ
    MB          of the file, 10^6 bytes
    write       seconds of `hf.report(advice, path, groups=...)` by the clock
    first card  seconds from opening the file in a browser until the first card is drawn, as the browser measures it:
                the middle one of five opens, each in a browser context of its own, and the longest of them

It needs a browser: `make browser`. Datasets are found through HOLDFAST_DATA; --quick is about German Credit.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from _side_by_side import parser_of, show, timed
from numpy.typing import NDArray
from playwright.sync_api import Browser, sync_playwright

from holdfast import Advice, Explainer, Sizes, report, seeds
from holdfast.datasets.prepared import prepare
from holdfast.explaining.selection import Answers
from holdfast.families.recipe import PAPER_RECIPES

sys.path.append(str(Path(__file__).parents[1] / "tools"))
import browsers

MOST_MB, MOST_SECONDS = 15.0, 2.0  # asked of 10,000 people
PLANS = 3
GROUPS = {"german": ["status_and_sex", "age"], "heloc": ["ExternalRiskEstimate"]}
PATIENCE = 600_000  # milliseconds


def searched(name: str, people: int, models: int, epochs: int | None) -> Advice:
    """Real advice for the first people of the test rows whom the model refuses."""
    data = prepare(name)
    recipe = PAPER_RECIPES[name]
    recipe = recipe if epochs is None else replace(recipe, epochs=epochs)
    explainer = Explainer(
        recipe,
        data.train,
        schema=data.schema,
        want=data.schema.classes[1],
        retrain=seeds(models + 1),
        sizes=Sizes(rehearsal=0, selection=1, audit=models),  # nothing is selected: no hold is asked for
        scaling=data.encoding.scaling,
    )
    rows = pd.concat([data.test, data.train])
    refused = explainer.deployed(explainer.encoding.encode(rows)).argmax(1).numpy() != 1
    return explainer.explain(rows[refused].iloc[:people].reset_index(drop=True), plans=PLANS)


def repeated(advice: Advice, people: int) -> Advice:
    """The same for so many people, all with three plans: those who have them, again and again under new labels."""
    plans = {place: np.flatnonzero(advice.given.place == place) for place in range(len(advice))}
    whole = [place for place, own in plans.items() if len(own) == PLANS]
    if not whole:
        raise SystemExit(f"none of {len(advice)} people has {PLANS} plans; ask about more: --people {2 * len(advice)}")
    places = np.resize(whole, people)
    given = taken(advice.given, np.concatenate([plans[place] for place in places.tolist()]))
    return replace(
        advice,
        people=advice.people.iloc[places].set_axis(pd.RangeIndex(100_000, 100_000 + people), axis=0),
        now=tuple(advice.now[place] for place in places),
        wanted=tuple(advice.wanted[place] for place in places),
        given=replace(given, place=np.repeat(np.arange(people), PLANS)),
        not_durable_plans=taken(advice.not_durable_plans, np.arange(0)),
        why_not=(None,) * people,
        problems=advice.problems.iloc[:0],
    )


def taken(part: Answers, rows: NDArray[np.int64]) -> Answers:
    """Some of the plans, as often as they are named."""
    audit = part.audit
    found = replace(part.counterfactuals[torch.from_numpy(rows)], labels=None)
    if audit is not None:
        said = audit.predictions[:, torch.from_numpy(rows)]
        audit = replace(audit, predictions=said, counterfactuals=found, before=None)
    return Answers(found, part.place[rows], part.plan[rows], part.accepted[rows], audit)


def first_card(browser: Browser, file: Path) -> float:
    """Seconds from the start of the navigation until the first card was drawn."""
    context = browser.new_context(offline=True)
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.goto(file.as_uri(), wait_until="commit")
    page.wait_for_function("() => performance.getEntriesByName('first-card').length > 0")
    milliseconds: float = page.evaluate("() => performance.getEntriesByName('first-card')[0].startTime")
    assert page.locator("#people > li.card").count() > 0
    context.close()
    return milliseconds / 1000


def row(advice: Advice, groups: list[str], browser: Browser, opens: int, folder: Path) -> dict[str, Any]:
    file, writing = timed(partial(report, advice, folder / f"{len(advice)}.html", groups=groups))
    seconds = [first_card(browser, file) for _ in range(opens)]
    size, middle = file.stat().st_size / 1e6, statistics.median(seconds)
    return {
        "people": len(advice),
        "different": len(advice.people.drop_duplicates()),
        "plans": len(advice.given),
        "MB": size,
        "MB at most": MOST_MB,
        "write": writing,
        "first card": middle,
        "longest": max(seconds),
        "first card at most": MOST_SECONDS,
        "reached": "yes" if size <= MOST_MB and middle <= MOST_SECONDS else "no",
    }


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--dataset", default="heloc", choices=GROUPS, help="whose people")
    parser.add_argument("--people", type=int, default=200, help="people for whom advice is searched")
    options = parser.parse_args()
    program = browsers.find()
    if program is None:
        raise SystemExit("there is no browser here: run `make browser`")
    name = "german" if options.quick else options.dataset
    few = {"people": 12, "models": 4, "epochs": 5} if options.quick else {}
    advice = searched(name, **({"people": options.people, "models": 32, "epochs": None} | few))
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=program, chromium_sandbox=os.geteuid() != 0)
        rows = [
            row(repeated(advice, people), GROUPS[name], browser, 2 if options.quick else 5, Path(folder))
            for people in ((20, 60) if options.quick else (1000, 10_000))
        ]
        browser.close()
    show("A report for many people", rows, options.json)


if __name__ == "__main__":
    main()
