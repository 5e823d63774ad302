"""Write model files that are made to harm, and honest ones beside them: tests/fixtures/hostile.

    python tools/write_hostile.py
    python tools/write_hostile.py --out FOLDER

Each hostile file must be refused with a sentence; manifest.json says what each one tries, and a piece of its sentence.
`tests/models/test_hostile_corpus.py` reads them all. No file does more than to make an empty file in the folder of the
process that reads it. The bytes are the same each time with the same versions of the libraries.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path
from typing import Any

from _hostile import keras, onnx, safetensors, skops, trees

FOLDER = Path(__file__).parents[1] / "tests" / "fixtures" / "hostile"
MANIFEST = "manifest.json"
FORMATS = (skops, trees, onnx, keras, safetensors)


def corpus() -> tuple[dict[str, bytes], dict[str, Any]]:
    """Every file, and the manifest."""
    files: dict[str, bytes] = {}
    entries: dict[str, dict[str, str]] = {}
    for module in FORMATS:
        honest = module.honest()
        files |= honest
        by_ending = {Path(name).suffix: name for name in honest}
        for one in module.hostile():
            if one.name in files:
                raise ValueError(f"two files are called {one.name}")
            files[one.name] = one.contents
            entries[one.name] = {
                "tries": f"{one.tries[0].upper()}{one.tries[1:]}.",
                "error": one.error,
                "honest": by_ending[Path(one.name).suffix],
            }
    honest_names = sorted(name for name in files if name not in entries)
    return files, {"honest": honest_names, "hostile": dict(sorted(entries.items()))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=FOLDER, metavar="FOLDER")
    folder: Path = parser.parse_args().out
    warnings.simplefilter("ignore")
    files, manifest = corpus()
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()) and not (folder / MANIFEST).exists():
        parser.error(f"{folder} holds other files; name an empty folder")
    for path in folder.iterdir():
        if path.name not in files:
            path.unlink()
    for name, contents in files.items():
        (folder / name).write_bytes(contents)
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    size = sum(path.stat().st_size for path in folder.iterdir())
    print(f"{len(manifest['hostile'])} hostile files and {len(manifest['honest'])} honest ones, {size >> 10} KiB")


if __name__ == "__main__":
    main()
