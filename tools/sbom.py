"""Write a software bill of materials: what a user of holdfast installs, as CycloneDX JSON.

    python tools/sbom.py dist/sbom.cdx.json

It lists holdfast's dependencies and theirs, as they are installed beside this interpreter: name, version, licence, and
the SHA-256 of every file that requirements.lock allows. Tools for development are not in it. The same environment gives
the same bytes: there is no time and no random number in it.
"""

from __future__ import annotations

import argparse
import json
import tomllib
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any
from urllib.parse import quote

from packaging.requirements import Requirement

import holdfast
from locks import ROOT, normal, pins

Json = dict[str, Any]
READ = {"skops": "MIT"}  # from the package's file LICENSE: its metadata names none


def declared() -> list[str]:
    """What pyproject.toml says that holdfast needs."""
    project: Json = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return list(project["dependencies"])


def needed(requirements: list[str]) -> list[str]:
    """The names of the requirements that hold on this machine, without extras."""
    parsed = [Requirement(requirement) for requirement in requirements]
    return sorted({normal(one.name) for one in parsed if one.marker is None or one.marker.evaluate({"extra": ""})})


def runtime() -> dict[str, Distribution]:
    """Every package that holdfast needs, directly or not, by its normal name."""
    found: dict[str, Distribution] = {}
    waiting = needed(declared())
    while waiting:
        name = waiting.pop()
        if name not in found:
            try:
                found[name] = distribution(name)
            except PackageNotFoundError:
                raise SystemExit(f"{name} is needed and not installed; run this in the environment of `make`") from None
            waiting += needed(found[name].requires or [])
    return dict(sorted(found.items()))


def licences(package: Distribution) -> list[Json]:
    """As the package states it: an SPDX expression, or else its one-line field, or else its classifiers."""
    about = package.metadata
    if expression := about.get("License-Expression") or READ.get(normal(package.name)):
        return [{"expression": expression}]
    field = (about.get("License") or "").strip()
    last = [line.split(" :: ")[-1] for line in about.get_all("Classifier") or [] if line.startswith("License :: ")]
    names = [field] if field and "\n" not in field else sorted(last)
    return [{"license": {"name": name}} for name in names]


def url(name: str, version: str) -> str:
    return f"pkg:pypi/{name}@{quote(version)}"


def component(name: str, package: Distribution, hashes: tuple[str, ...]) -> Json:
    address = url(name, package.version)
    files = {
        "type": "distribution",
        "url": address,
        "comment": "every file of this version that requirements.lock allows",
        "hashes": [{"alg": "SHA-256", "content": one} for one in hashes],
    }
    return {
        "type": "library",
        "bom-ref": address,
        "name": name,
        "version": package.version,
        "licenses": licences(package),
        "purl": address,
        **({"externalReferences": [files]} if hashes else {}),
    }


def document() -> Json:
    locked, packages = pins(), runtime()
    unlocked = sorted(packages.keys() - locked.keys())
    if unlocked:
        raise SystemExit(f"requirements.lock lacks {', '.join(unlocked)}; run `make lock`")
    address = {name: url(name, package.version) for name, package in packages.items()}
    own = url("holdfast", holdfast.__version__)
    uses = {own: needed(declared())} | {
        address[name]: needed(package.requires or []) for name, package in packages.items()
    }
    about = {"type": "library", "bom-ref": own, "name": "holdfast", "version": holdfast.__version__, "purl": own}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": about | {"licenses": [{"license": {"id": "Apache-2.0"}}]}},
        "components": [component(name, package, locked[name].hashes) for name, package in packages.items()],
        "dependencies": [{"ref": one, "dependsOn": [address[name] for name in names]} for one, names in uses.items()],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="where to write it")
    file = parser.parse_args().file
    made = document()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(made, indent=2) + "\n", encoding="utf-8")
    print(f"{file}: {len(made['components'])} packages")


if __name__ == "__main__":
    main()
