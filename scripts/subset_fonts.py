"""Cut the plate's fonts down to what a plate says: `python scripts/subset_fonts.py FOLDER_OF_TTF`.

Needs fonttools and brotli. The faces are Barlow Condensed Medium and Bold (SIL Open Font License) of the npm package
`@expo-google-fonts/barlow-condensed` 0.4.1, which has their licence as LICENSE_FONT. Layout tables and hints are left
out: without kerning and ligatures a text is as wide as its letters' advances together, which is what the plate reckons.
"""

from __future__ import annotations

import sys
from pathlib import Path

from fontTools import subset

FONTS = Path(__file__).parents[1] / "src/nameplate/ratingplate/fonts"
FACES = {"BarlowCondensed_500Medium.ttf": "medium", "BarlowCondensed_700Bold.ttf": "bold"}
# ASCII, Latin-1, Latin Extended-A; dashes, quotes, ellipsis, euro, micro, minus, multiplication, comparisons, arrows.
LETTERS = (
    *range(0x20, 0x7F),
    *range(0xA0, 0x180),
    *map(ord, "‐‑‒–—―‘’“”„†•…‰′″€™Ωμ←↑→↓−∞≈≠≤≥\ufffd"),
)


def main() -> None:
    """Write each face's subset into the package."""
    sources = Path(sys.argv[1])
    FONTS.mkdir(parents=True, exist_ok=True)
    for source, face in FACES.items():
        options = subset.Options(layout_features=[], hinting=False, notdef_outline=True, drop_tables=["DSIG"])
        options.name_IDs = [1, 2, 4, 6, 13, 14, 16, 17]
        font = subset.load_font(str(next(sources.rglob(source))), options)
        cutter = subset.Subsetter(options)
        cutter.populate(unicodes=LETTERS)
        cutter.subset(font)
        # The first is measured and rendered from, the second goes into drawings.
        for flavor, suffix in ((None, "ttf"), ("woff2", "woff2")):
            options.flavor = flavor
            path = FONTS / f"{face}.{suffix}"
            subset.save_font(font, str(path), options)
            print(path.name, path.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
