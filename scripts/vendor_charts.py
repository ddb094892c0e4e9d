"""Rebuild `pages/assets/charts.js`: Vega, Vega-Lite, their interpreter and tooltips, as one file without a network.

Needs Node.js with npm. The versions below are those in the package; change them here, run this, and run the tests of
the pages in a browser. The licences of everything that is bundled are written beside it.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from pathlib import Path

ASSETS = Path(__file__).resolve().parents[1] / "src" / "nameplate" / "pages" / "assets"
PACKAGES = {"vega": "6.4.0", "vega-lite": "6.4.3", "vega-interpreter": "2.3.2", "vega-tooltip": "1.1.0"}
BUNDLER = {"esbuild": "0.28.2"}
ENTRY = """
export {View, parse, Warn} from 'vega';
export {compile} from 'vega-lite';
export {expressionInterpreter} from 'vega-interpreter';
export {Handler} from 'vega-tooltip';
"""


def main() -> None:
    """Install the packages in a folder that goes away, bundle them, and copy the result."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "package.json").write_text(json.dumps({"private": True}))
        (folder / "entry.js").write_text(ENTRY)
        wanted = [f"{package}@{version}" for package, version in {**PACKAGES, **BUNDLER}.items()]
        subprocess.run(["npm", "install", "--no-audit", "--no-fund", *wanted], cwd=folder, check=True)
        bundle = ["npx", "esbuild", "entry.js", "--bundle", "--minify", "--format=iife", "--global-name=charts"]
        bundle += ["--target=es2020", "--charset=ascii", "--legal-comments=none", "--metafile=meta.json"]
        subprocess.run([*bundle, "--outfile=charts.js"], cwd=folder, check=True)
        shutil.copy(folder / "charts.js", ASSETS / "charts.js")
        (ASSETS / "charts.LICENSES.txt").write_text(_licences(folder))


def _licences(folder: Path) -> str:
    """Return name, version and licence text of every package that the bundle holds."""
    inputs = json.loads((folder / "meta.json").read_text())["inputs"]
    packages = sorted({name for path in inputs if (name := _package(path)) is not None})
    parts = []
    for package in packages:
        home = folder / "node_modules" / package
        told = json.loads((home / "package.json").read_text())
        texts = sorted(home.glob("LICEN[SC]E*"))
        words = texts[0].read_text().strip() if texts else f"Licence: {told.get('license', 'not stated')}"
        parts.append(f"{package} {told['version']}\n\n{words}\n")
    return ("\n" + "-" * 80 + "\n\n").join(parts)


def _package(path: str) -> str | None:
    parts = path.split("/")
    if parts[0] != "node_modules":
        return None
    return "/".join(parts[1:3]) if parts[1].startswith("@") else parts[1]


if __name__ == "__main__":
    main()
