"""What the README shows is true: its example runs as pasted, in a fresh process and without a main guard."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def test_the_example_runs_as_pasted(tmp_path):
    (code,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    script = tmp_path / "example.py"
    script.write_text(code, encoding="utf-8")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=300, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Audit of Counterfactuals(") == 2
    assert "seeds:" in done.stdout
    assert "found" in done.stdout


def test_links_lead_somewhere():
    root = Path(__file__).parent.parent
    for page in [root / "README.md", root / "CONTRIBUTING.md", *root.glob("docs/*.md")]:
        for link in re.findall(r"\]\((?!https?:)([^)#]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / link).exists(), f"{page.name} links to {link}"
