"""Make the pictures of docs/howto/plots.md: run the page's own blocks, which save them, in docs/figures.

python docs/make_plots.py
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import matplotlib as mpl

DOCS = Path(__file__).parent
BLOCK = re.compile(r"^```python\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)


def main() -> None:
    code = "\n".join(BLOCK.findall((DOCS / "howto" / "plots.md").read_text(encoding="utf-8")))
    mpl.use("agg")
    os.chdir(DOCS / "figures")
    exec(compile(code, "plots.md", "exec"), {"__name__": "plots"})


if __name__ == "__main__":
    main()
