"""Text as LaTeX prints it."""

_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"$<$",
    ">": r"$>$",
    "±": r"$\pm$",
    "−": r"$-$",
    "×": r"$\times$",
    "≥": r"$\ge$",
    "≤": r"$\le$",
    "√": r"$\surd$",
    "–": "--",
    "³": r"\textsuperscript{3}",
    **{
        sign: f"$\\{name}$"
        for sign, name in zip(
            "αβγδεηθλμρσ",
            [
                "alpha",
                "beta",
                "gamma",
                "delta",
                "epsilon",
                "eta",
                "theta",
                "lambda",
                "mu",
                "rho",
                "sigma",
            ],
            strict=True,
        )
    },
}


def escape_latex(text: str) -> str:
    """Text that LaTeX prints as it stands; Greek letters and signs become formulas."""
    return "".join(_LATEX.get(sign, sign) for sign in text)
