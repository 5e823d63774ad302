"""Seizure: 11,500 one-second stretches of EEG, during an epileptic seizure or not."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.datasets.cards import Card
from holdfast.tabular.feature import Feature
from holdfast.tabular.schema import Schema

if TYPE_CHECKING:
    import pandas as pd

# 178 samples of the recording, one after another. Nobody sets a sample of their EEG: here a counterfactual
# says what the recording would have to look like, so every sample may move.
SAMPLES = tuple(f"X{number}" for number in range(1, 179))


def read(path: Path) -> pd.DataFrame:
    import pandas as pd

    raw = pd.read_csv(path)
    # 1 is a seizure; 2 to 5 are four kinds of recording without one.
    state = raw["y"].eq(1).map({True: "seizure", False: "no seizure"})
    # Copying joins what read_csv keeps as 178 loose columns; pandas warns whoever adds to those.
    return pd.concat([raw[list(SAMPLES)], state.rename("state")], axis=1).copy()


CARD = Card(
    name="seizure",
    title="Epileptic Seizure Recognition",
    file="seizure/data.csv",
    sha256="4b3f6024ea24a864c0de51b2ba477bf8b9e4974e8cc01a00dcf45bfc59d48deb",
    rows=11500,
    schema=Schema(
        tuple(Feature(name, "integer") for name in SAMPLES),
        label="state",
        classes=("seizure", "no seizure"),
    ),
    read=read,
    split=(7950, 3550),
    scaling="standard",
    licence="CC BY 4.0 as all of UCI's content, not confirmed for this entry",
    source="Andrzejak, R. G. et al. (2001). Phys. Rev. E 64, 061907; "
    "Wu, Q. and Fokoue, E. (2017). Epileptic Seizure Recognition. UCI. doi:10.24432/C5G308",
    home="https://github.com/QiuyiWu/Epileptic-Seizure-Recognition-Data",
)
