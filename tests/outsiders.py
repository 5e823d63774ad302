"""Models that were trained outside holdfast, as users of each library train and save them, and the users' tables."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import holdfast as hf

LABEL = {"cancer": "diagnosis", "german": "risk"}
TRAIN, PEOPLE = 300, 5
Says = Callable[[pd.DataFrame], Any]  # rows of features -> classes 0 and 1, by the user's own library


@functools.cache
def table(name: str) -> pd.DataFrame:
    """With a column of ids that are not the numbers of the rows, and the label as 0 (not wanted) and 1."""
    if name == "cancer":
        data = load_breast_cancer(as_frame=True)
        own = data.data.iloc[:, :8].assign(diagnosis=data.target)
    else:
        own, schema = hf.load("german")
        own = own[[*schema.names, schema.label]].assign(risk=(own[schema.label] == "good").astype(int))
    own = own.sample(frac=1, random_state=0)
    own.insert(0, "id", 5000 + np.arange(len(own)))
    return own.reset_index(drop=True)


def features(name: str) -> list[str]:
    return [column for column in table(name) if column not in ("id", LABEL[name])]


def train_rows(name: str) -> pd.DataFrame:
    return table(name).iloc[:TRAIN]


def people(name: str, says: Says) -> pd.DataFrame:
    """People whom the model turns down."""
    rest = table(name).iloc[TRAIN:]
    return rest[np.asarray(says(rest[features(name)])) == 0].head(PEOPLE).drop(columns=LABEL[name])


def x_and_y(name: str) -> tuple[pd.DataFrame, pd.Series[Any]]:
    rows = train_rows(name)
    return rows[features(name)], rows[LABEL[name]]


def text_columns(x: pd.DataFrame) -> list[str]:
    return [name for name in x if not pd.api.types.is_numeric_dtype(x[name])]


def in_categories(x: pd.DataFrame, like: pd.DataFrame) -> pd.DataFrame:
    kinds = {name: pd.CategoricalDtype(sorted(like[name].unique())) for name in text_columns(like)}
    return x.astype(kinds)


def one_hot(x: pd.DataFrame, like: pd.DataFrame) -> pd.DataFrame:
    return pd.get_dummies(x).reindex(columns=pd.get_dummies(like).columns, fill_value=False)


def standardised(name: str) -> Callable[[pd.DataFrame], np.ndarray]:
    """Numbers as a user of a network makes them: by hand without categories, else by holdfast's own encoding."""
    x, _ = x_and_y(name)
    if not text_columns(x):
        return lambda rows: ((rows - x.mean()) / x.std()).to_numpy(np.float32)
    rows = train_rows(name).drop(columns="id")
    encoding = hf.Encoding.fit(rows, hf.Schema.infer(rows, LABEL[name]))
    return lambda rows: encoding.encode(rows).numpy()


# ---- one function for each library: a fitted model, by seed ----


def torch_module(name: str, seed: int = 0) -> torch.nn.Module:
    x, y = x_and_y(name)
    rows, labels = torch.tensor(standardised(name)(x)), torch.tensor(y.to_numpy())
    torch.manual_seed(seed)
    module = torch.nn.Sequential(torch.nn.Linear(rows.shape[1], 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    optimiser = torch.optim.Adam(module.parameters(), 0.02)
    for _ in range(40):
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(module(rows), labels).backward()
        optimiser.step()
    return module.eval()


def pipeline(name: str) -> Any:
    x, y = x_and_y(name)
    text = text_columns(x)
    numbers = [column for column in x if column not in text]
    columns = make_column_transformer((StandardScaler(), numbers), (OneHotEncoder(handle_unknown="ignore"), text))
    return make_pipeline(columns, LogisticRegression(max_iter=1000)).fit(x, y)


def keras_model(name: str, seed: int = 0) -> Any:
    os.environ.setdefault("KERAS_BACKEND", "torch")
    import keras

    x, y = x_and_y(name)
    rows = standardised(name)(x)
    keras.utils.set_random_seed(seed)
    dense = keras.layers.Dense
    model = keras.Sequential([keras.Input((rows.shape[1],)), dense(8, activation="relu"), dense(1, "sigmoid")])
    model.compile(keras.optimizers.Adam(0.02), "binary_crossentropy")
    model.fit(rows, y.to_numpy(), epochs=8, batch_size=50, verbose=0)
    return model


def xgb_classifier(name: str, hot: bool = False) -> Any:
    import xgboost

    x, y = x_and_y(name)
    own = xgboost.XGBClassifier(n_estimators=12, max_depth=3, subsample=0.7, enable_categorical=not hot, n_jobs=1)
    return own.fit(one_hot(x, x) if hot else in_categories(x, x), y)


def lgbm_classifier(name: str) -> Any:
    import lightgbm

    x, y = x_and_y(name)
    own = lightgbm.LGBMClassifier(n_estimators=12, num_leaves=6, verbose=-1, n_jobs=1)
    return own.fit(in_categories(x, x), y)


# ---- their files, and what they say when their own library reads them again ----


def torch_files(name: str, folder: Path, retrained: int) -> Says:
    from safetensors.torch import save_file

    (folder / "retrained").mkdir()
    for seed in range(retrained + 1):
        path = folder / "model.safetensors" if seed == 0 else folder / "retrained" / f"{seed:02}.safetensors"
        save_file(torch_module(name, seed).state_dict(), path)
    return torch_file(name, folder / "model.safetensors")


def torch_file(name: str, path: Path) -> Says:
    from safetensors.torch import load_file

    module, encoded = torch_module(name, 99), standardised(name)
    module.load_state_dict(load_file(path))
    return lambda rows: module(torch.tensor(encoded(rows))).argmax(1).numpy()


def keras_files(name: str, folder: Path, retrained: int) -> Says:
    (folder / "retrained").mkdir()
    for seed in range(retrained + 1):
        path = folder / "model.keras" if seed == 0 else folder / "retrained" / f"{seed:02}.keras"
        keras_model(name, seed).save(path)
    return keras_file(name, folder / "model.keras")


def keras_file(name: str, path: Path) -> Says:
    import keras

    model, encoded = keras.models.load_model(path), standardised(name)
    return lambda rows: (np.asarray(model.predict(encoded(rows), verbose=0))[:, 0] > 0.5).astype(int)


def sklearn_files(name: str, folder: Path, retrained: int) -> Says:
    import skops.io

    skops.io.dump(pipeline(name), folder / "model.skops")
    own = skops.io.load(folder / "model.skops")
    return lambda rows: own.predict(rows[features(name)])


def xgboost_files(name: str, folder: Path, retrained: int, hot: bool = False) -> Says:
    import xgboost

    xgb_classifier(name, hot).save_model(folder / "model.ubj")
    own, (x, _) = xgboost.XGBClassifier(), x_and_y(name)
    own.load_model(folder / "model.ubj")
    shown = one_hot if hot else in_categories
    return lambda rows: own.predict(shown(rows[features(name)], x))


def xgboost_hot_files(name: str, folder: Path, retrained: int) -> Says:
    return xgboost_files(name, folder, retrained, hot=True)


def lightgbm_files(name: str, folder: Path, retrained: int) -> Says:
    import lightgbm

    lgbm_classifier(name).booster_.save_model(folder / "model.txt")
    own, (x, _) = lightgbm.Booster(model_file=folder / "model.txt"), x_and_y(name)
    return lambda rows: (own.predict(in_categories(rows[features(name)], x)) > 0.5).astype(int)
