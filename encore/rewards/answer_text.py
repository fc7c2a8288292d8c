r"""The text of a mathematical answer, reduced to meaningful parts; and whether the text is an expression.

Computer algebra reads as much of a text as it understands and leaves the rest: of `a \approx b` the `a`, of
`a} b` the `a`. So a text that has an unknown command, a foreign character or an open brace is not an
expression.
"""

import re
import unicodedata

DROPPED = re.compile(
    r"\\(?:left|right|[bB]igg?[lrm]?|displaystyle|textstyle|q?quad|(?:en|thin|med|thick|negthin)space)(?![a-z])"
    r"|(?<!\\)\\[,!;: ]|~"
)
# another spelling -> the spelling in the normal form, of commands and then of Unicode characters
COMMANDS = {
    **dict.fromkeys(("dfrac", "tfrac", "cfrac"), "frac"),
    **dict.fromkeys(("leq", "leqslant"), "le"),
    **dict.fromkeys(("geq", "geqslant"), "ge"),
    "varnothing": "emptyset",
}
CHARACTERS = {
    **dict.fromkeys("\u2212\u2013", "-"),
    **{"\u2264": "\\le ", "\u2265": "\\ge ", "\u00d7": "\\times ", "\u00b7": "\\cdot ", "\u03c0": "\\pi "},
    **{
        "\u221e": "\\infty ",
        "\u00b0": "^\\circ",
        "\u2205": "\\emptyset",
        "\u222a": "\\cup ",
        "\u00b1": "\\pm ",
    },
}
ROOT = re.compile(r"\u221a\s*(?:(\d+(?:\.\d+)?|[A-Za-z])|\(([^()]*)\))")  # roots such as `√12`, `√(x+1)`
VULGAR = re.compile("[\u00bc-\u00be\u2150-\u215e]")  # fractions such as `½`
STRINGS = {"^{\\circ}": "^\\circ", "\\degree": "^\\circ", "\\%": "%", "{,}": "", "\\lt ": "<", "\\gt ": ">"}
STRINGS |= {"{bmatrix}": "{pmatrix}"}
DISPLAY = re.compile(r"(?:\$\$?|\\\(|\\\[)(.*?)(?:\$\$?|\\\)|\\\])", re.DOTALL)
BOLD = re.compile(r"\*\*([^*]+)\*\*\.?")  # Markdown's, as chat models write a final answer
DOLLAR = re.compile(r"(?<!\\)\$")
TEXT = re.compile(r"\\(?:text|mbox|mathrm|textrm|textbf|mathbf)\s*\{([^{}]*)\}")
SUBSCRIPT = re.compile(r"(?P<log>\\log\s*)?_(?:\{(?P<braced>\w+)\}|(?P<bare>\w))")
MIXED = re.compile(r"(?<![\w.,/])(\d+)\s+(\d+)/(\d+)(?![\w.,/])")  # mixed numbers such as `2 1/2`
THOUSANDS = re.compile(r"(?<![\d.,])(\d{1,3})((?:,\d{3})+)(?![\d,])")
SCIENTIFIC = re.compile(r"(?<![\w.\\])(\d+(?:\.\d+)?)[eE]([+-]?\d+)(?![\w.])")
# the parts of an expression that math-verify can read, and marks above or beside a letter
FUNCTIONS = """
frac sqrt binom choose cdot times div circ infty emptyset cup cap le ge pm mp
log ln exp sin cos tan csc sec cot arcsin arccos arctan arccsc arcsec arccot sinh cosh tanh
arsinh arcosh artanh arcsinh arccosh arctanh gcd lcm max min det lim to sum prod int floor ceil
lfloor rfloor lceil rceil vert lvert rvert langle rangle lbrace rbrace lbrack rbrack begin end
mathit mathbb mathcal operatorname overrightarrow vec hat dot ddot tilde angle triangle hbar ell prime limits
"""
GREEK = """
alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi omicron pi varpi
rho varrho sigma varsigma tau upsilon phi varphi chi psi omega
"""
KNOWN = frozenset(FUNCTIONS.split()) | {
    spelling for letter in GREEK.split() for spelling in (letter, letter.capitalize())
}
COMMAND = re.compile(r"\\([A-Za-z]+)")
PIECE = re.compile(r"\\[{}\\|]|\\(?P<command>[A-Za-z]+)|[A-Za-z0-9\s{}()\[\]^_+*/.,!|&'\"<>\u0391-\u03c9-]")


def normal(answer: str) -> str:
    r"""Return the answer's text without parts that mean nothing; `\x00` marks the edges of `\\text{…}`."""
    text = shown(answer)
    signs = DOLLAR.findall(text)  # a single dollar sign is money, several are around formulas
    text = DOLLAR.sub(r"\\$" if len(signs) == 1 else " ", text)
    text = COMMAND.sub(lambda match: "\\" + COMMANDS.get(match[1], match[1]), text)
    for old, new in (CHARACTERS | STRINGS).items():
        text = text.replace(old, new)
    text = ROOT.sub(lambda match: f"\\sqrt{{{match[1] or match[2]}}}", text)
    text = VULGAR.sub(_fraction, text)
    text = re.sub(r"(?<=\d)(?:\\[,!;: ]|~)(?=\d{3})", "", text.replace(",\\!", ","))
    text = re.sub(r"(?<=\d)\s+(?=\\frac|\d{3}(?!\d))", "", text)
    text = MIXED.sub(r"\1\\frac{\2}{\3}", text)
    text = TEXT.sub(lambda match: f"\x00{match[1]}\x00", text)
    text = DROPPED.sub(" ", text)
    text = THOUSANDS.sub(lambda match: match[1] + match[2].replace(",", ""), text)
    text = SCIENTIFIC.sub(lambda match: f"{match[1]}\\cdot 10^{{{int(match[2])}}}", text)
    text = re.sub(r"\\frac\s*(\d)\s*(\d)(?!\d)", r"\\frac{\1}{\2}", text)
    text = re.sub(r"(?<![\d}])\\frac\s*\{(\d+)\}\s*\{(\d+)\}(?![\^!])", r"\1/\2", text)
    text = SUBSCRIPT.sub(_subscript, text)
    text = re.sub(r"\\\{\s*\\\}", r"\\emptyset", text)
    return text.strip().removesuffix(".").strip()


def _fraction(character: re.Match[str]) -> str:
    """Return `\\frac{1}{2}` for `½`, and likewise for other fraction characters."""
    above, _, below = unicodedata.normalize("NFKC", character[0]).partition("\u2044")
    return f"\\frac{{{above}}}{{{below}}}"


def _subscript(match: re.Match[str]) -> str:
    """Return a subscript without braces, except after a logarithm, whose argument it would run into."""
    index = match["braced"] or match["bare"]
    return f"\\log_{{{index}}}" if match["log"] else f"_{index}"


def shown(text: str) -> str:
    """Return the text inside the math delimiters around an answer, such as `$…$`, or else the whole text.

    Asterisks that make the whole answer bold are left out.
    """
    text = text.strip()
    if bold := BOLD.fullmatch(text):
        text = bold[1].strip()
    display = DISPLAY.fullmatch(text) or DISPLAY.fullmatch(text.rstrip("."))
    return display[1].strip() if display and "$" not in display[1].replace("\\$", "") else text


def balanced(text: str) -> bool:
    """Return whether all braces of a text are closed and in order; `\\{` and `\\}` are plain signs."""
    depth = 0
    for brace in re.findall(r"\\.|[{}]", text, re.DOTALL):
        depth += {"{": 1, "}": -1}.get(brace, 0)
        if depth < 0:
            return False
    return depth == 0


def expression(text: str) -> bool:
    """Return whether a text consists only of the parts of expressions."""
    return not PIECE.sub(lambda piece: "" if (piece["command"] or "pi") in KNOWN else "?", text)
