"""A picture of rows of squares, each with the verdicts on one statement in it, as a small SVG.

A square whose claims came to one verdict has its colour and sign. A square with more verdicts is divided:
each verdict has the share of its claims.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from markupsafe import Markup

from analysis.page.palette import VERDICT_COLOURS
from analysis.verdicts.claims import NOT_TESTED, VERDICTS
from analysis.verdicts.rule import EQUIVALENT, OPEN, REVERSED, SHOWN, SMALLER

NO_CLAIM = "no claim"  # the word of a statement that no claim tests
WORDS = (*VERDICTS, NO_CLAIM)
SIDE, GAP, LETTER, EDGE = 16, 5, 6.4, 8  # size of a square, of a gap, of a letter and of the margin
ROW = SIDE + 8
COLUMNS = 4  # of the legend, whose last entry may be longer than the others
PAPER, WELL = "#ffffff", "#eceef1"  # the background, and the filling of an open square
SIGNS = {  # lines from the corner of a square
    SHOWN: "m4 8.5l3 3.5l5.5-8",
    SMALLER: "m11 3.5l-6 4.5l6 4.5",
    EQUIVALENT: "m4 6h8m-8 4h8",
    REVERSED: "m4.5 4.5l7 7m0-7l-7 7",
    OPEN: "m5.5 6c0-3.5 5-3.5 5 0c0 2-2.5 1.5-2.5 3.5m0 2v1",
    NOT_TESTED: "m5 8h6",
}
DECIDED = (SHOWN, SMALLER, EQUIVALENT, REVERSED)
# word -> the attributes of its area
LOOKS: Mapping[str, str] = {word: f'fill="{VERDICT_COLOURS[word]}"' for word in DECIDED} | {
    OPEN: f'fill="{WELL}" stroke="{VERDICT_COLOURS[OPEN]}"',
    NOT_TESTED: f'fill="none" stroke="{VERDICT_COLOURS[NOT_TESTED]}" stroke-dasharray="2"',
    NO_CLAIM: 'fill="none" stroke="#c4c9cf"',
}
HEAD = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="{0:.0f}" height="{1:.0f}" viewBox="0 0 {0:.0f} {1:.0f}" '
    'font-family="sans-serif" font-size="12"><rect width="100%" height="100%" fill="{2}"/>\n'
)


class Row(NamedTuple):
    """A row: its name, and the verdicts in each of its squares, which are of WORDS."""

    name: str
    squares: Sequence[Sequence[str]]


class _Square(NamedTuple):
    """A square, by the place of its corner."""

    x: float
    y: float
    words: Sequence[str]

    @property
    def sign(self) -> str:
        """The sign of the only verdict; "" if there are more, or if it has no sign."""
        (first, *others) = dict.fromkeys(self.words)
        return "" if others else SIGNS.get(first, "")


def draw(rows: Sequence[Row], divided: str) -> str:
    """Return the picture, with a legend below it; `divided` says in words what a divided square is."""
    left = EDGE + LETTER * max(len(row.name) for row in rows) + GAP
    most = max(len(row.squares) for row in rows)
    column = SIDE + GAP * 4 + LETTER * max(map(len, WORDS))
    bottom = EDGE + ROW * len(rows) + GAP
    squares, texts = [], []
    for down, row in enumerate(rows):
        y = EDGE + ROW * down
        texts.append(_text(EDGE, y, row.name))
        squares += [_Square(left + (SIDE + GAP) * at, y, words) for at, words in enumerate(row.squares)]
    for place, (name, words) in enumerate([*((word, (word,)) for word in WORDS), (divided, (SHOWN, OPEN))]):
        x, y = EDGE + column * (place % COLUMNS), bottom + ROW * (place // COLUMNS)
        texts.append(_text(x + SIDE + GAP, y, name))
        squares.append(_Square(x, y, words))
    width = max(left + (SIDE + GAP) * most, squares[-1].x + SIDE + GAP + LETTER * len(divided))
    height = squares[-1].y + ROW + EDGE
    parts = [Markup(HEAD).format(width + EDGE, height, PAPER), *_paths(squares), *texts, Markup("</svg>\n")]
    return str(Markup("").join(parts))


def _text(x: float, y: float, text: str) -> Markup:
    return Markup('<text x="{:.0f}" y="{:.0f}" fill="#1c1f23">{}</text>\n').format(x, y + SIDE - 4, text)


def _paths(squares: Sequence[_Square]) -> Iterator[Markup]:
    """Yield a path for all areas of one verdict, and then one for all signs of a colour."""
    shapes: dict[str, list[str]] = defaultdict(list)
    light: list[str] = []
    dark: list[str] = []
    for square in squares:
        for word, x, width in _areas(square):
            shapes[word].append(f"M{x:.4g} {square.y:g}h{width:.3g}v{SIDE}h-{width:.3g}z")
        if square.sign:
            signs = light if square.words[0] in DECIDED else dark
            signs.append(f"M{square.x:.4g} {square.y:g}{square.sign}")
    for word in WORDS:
        yield Markup('<path {} d="{}"/>\n').format(Markup(LOOKS[word]), "".join(shapes[word]))
    for colour, signs in ((PAPER, light), (VERDICT_COLOURS[OPEN], dark)):
        drawn = '<path fill="none" stroke="{}" stroke-width="1.8" d="{}"/>\n'
        yield Markup(drawn).format(colour, "".join(signs))


def _areas(square: _Square) -> Iterator[tuple[str, float, float]]:
    """Yield each verdict of a square with the left edge and the width of its area."""
    x = square.x
    for word in WORDS:
        if share := square.words.count(word) / len(square.words):
            yield word, x, SIDE * share
            x += SIDE * share
