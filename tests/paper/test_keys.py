"""Cells of studies are found again by a digest of all that decides them: it stays when classes move or are renamed."""

from __future__ import annotations

import hashlib
import json

import pytest

import holdfast as hf
from holdfast.paper.keys import WRITTEN, described
from holdfast.paper.matched import SamePrice
from holdfast.paper.reference.alibi import AlibiPrototype
from holdfast.paper.reference.art import ElasticNetART
from holdfast.paper.release import ReleasedLatent, ReleasedPGD, ReleasedSNS
from holdfast.theory.certificates import Absolute, Relative

PINNED = {
    "Absolute": (Absolute(), "4ac66bf347dce7b5"),
    "AlibiPrototype": (AlibiPrototype(), "2105545b1324eb23"),
    "Certified": (hf.STABILISERS["certified"](), "03acdc4354d03833"),
    "Confidence": (hf.STABILISERS["confidence"](), "92b790c3f1ca2de5"),
    "ElasticNetART": (ElasticNetART(), "64582c94a1400e2f"),
    "Latent": (hf.Latent(), "16b312fe9655da66"),
    "Margin": (hf.Margin(), "87ee2257dde1216f"),
    "MinCost": (hf.MinCost(), "c5dabba9d3ba2fc1"),
    "PGD": (hf.PGD(), "53a43f01ce7d2aea"),
    "Pipeline": (hf.make_method("pgd+sns"), "f8eb12eaf14b3fab"),
    "Prototype": (hf.Prototype(), "e4f8eaac156b834a"),
    "Recipe": (hf.Recipe(), "cfbca1d4bb42c34b"),
    "Relative": (Relative(), "e98279f354b8a154"),
    "ReleasedLatent": (ReleasedLatent(1.0), "e8777020b3d388b5"),
    "ReleasedPGD": (ReleasedPGD(1.0), "db396205f7a84bc1"),
    "ReleasedSNS": (ReleasedSNS(1.0), "b0626062d87a84a5"),
    "SNS": (hf.SNS(), "049590095bfce6c8"),
    "SamePrice": (SamePrice(), "0b2a1500575ce669"),
    "Sparse": (hf.STABILISERS["sparse"](), "2df4e9356760c6ed"),
}


def test_every_class_of_a_key_is_pinned():
    assert PINNED.keys() | {"Autoencoder"} == WRITTEN.keys()  # an autoencoder is fitted: its key is that of its weights


@pytest.mark.parametrize("name", PINNED)
def test_the_key_of_a_class_stays(name):
    value, digest = PINNED[name]
    written = json.dumps(described(value), sort_keys=True)
    assert hashlib.sha256(written.encode()).hexdigest()[:16] == digest
