"""How wide a text is in DejaVu Sans, the widest of the fonts that readers' machines take for sans-serif.

For the drawings that are written by program, and for tools/checks/check_drawings.py."""

# The widths of its letters, in hundredths of the font's size.
WIDTHS = {27: "'", 28: "ijl", 29: "IJ", 32: " ,.·’", 34: "/:;\\|", 35: "f", 36: "-", 38: "ᵀ", 39: "()[]t⌈⌉⌊⌋",
          40: "!²³₀₁₂₃₄", 41: "r", 46: '"', 50: "*_`–", 52: "sz", 53: "?", 55: "c", 56: "L", 58: "Fk", 59: "vxy",
          60: "P", 61: "TYao", 62: "e", 63: "ESbdghnpqu", 64: "$0123456789{}µ√", 66: "K", 68: "AV", 69: "BRXZ", 70: "C", 73: "U",
          75: "HN", 77: "DG", 78: "&", 79: "OQ", 82: "w", 84: "#+<=>^~±×÷←↑→↓−≤≥", 86: "M", 95: "%", 97: "m½", 99: "W"}
OF = {letter: width / 100 for width, letters in WIDTHS.items() for letter in letters}
BOLD = 1.15  # of bold letters over plain ones, seldom more


def text_width(text, size, bold=False):
    """In the unit of the size; a letter that is not listed counts as one of the widest."""
    return size * sum(OF.get(letter, 1.0) for letter in text) * (BOLD if bold else 1)
