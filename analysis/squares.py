"""An SVG picture with rows of squares; a square shows the verdicts on the claims that test one statement.

If all claims have one verdict, the square has the colour and the sign of this verdict. Otherwise it is
divided: each verdict has an area in proportion to its claims.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from markupsafe import Markup

from analysis.page.palette import VERDICT_COLOURS
from analysis.verdicts.claims import NOT_TESTED, VERDICTS
from analysis.verdicts.rule import EQUIVALENT, OPEN, REVERSED, SHOWN, SMALLER

NO_CLAIM = "no claim here yet"  # word in place of a verdict, for a statement that no claim tests
WORDS = (*VERDICTS, NO_CLAIM)
SIDE, GAP, LETTER, EDGE = 16, 5, 6.4, 8  # pixels: side of a square, gap, width of a letter, margin
ROW = SIDE + 8
COLUMNS = 4  # columns of the legend, whose last entry may be longer than the others
PAPER, WELL = "#ffffff", "#eceef1"  # the background, and the filling of an open square
SIGNS = {  # verdict -> its sign, as an SVG path from the upper left corner of a square
    SHOWN: "m4 8.5l3 3.5l5.5-8",
    SMALLER: "m11 3.5l-6 4.5l6 4.5",
    EQUIVALENT: "m4 6h8m-8 4h8",
    REVERSED: "m4.5 4.5l7 7m0-7l-7 7",
    OPEN: "m5.5 6c0-3.5 5-3.5 5 0c0 2-2.5 1.5-2.5 3.5m0 2v1",
    NOT_TESTED: "m5 8h6",
}
DECIDED = (SHOWN, SMALLER, EQUIVALENT, REVERSED)
# word -> the SVG attributes of its area
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
    """A row of squares: its name, and the words (of WORDS) in each square, one for each claim."""

    name: str
    squares: Sequence[Sequence[str]]


class _Square(NamedTuple):
    """A square with its upper left corner in pixels; `words` has a word for each claim."""

    x: float
    y: float
    words: Sequence[str]

    @property
    def sign(self) -> str:
        """The sign of the square's only verdict; "" if there are several verdicts, or if it has no sign."""
        (first, *others) = dict.fromkeys(self.words)
        return "" if others else SIGNS.get(first, "")


def draw(rows: Sequence[Row], divided: str) -> str:
    """Return the picture as SVG, with a legend; `divided` is the legend's text for a divided square."""
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
    """Yield an SVG path for each word, with all its areas, and then one for each colour of signs."""
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
    """Yield each verdict of a square, with left edge and width, in pixels, of the part that it colours."""
    x = square.x
    for word in WORDS:
        if share := square.words.count(word) / len(square.words):
            yield word, x, SIDE * share
            x += SIDE * share
