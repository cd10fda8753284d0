"""table.tex."""

import re
import shutil
import subprocess

import pytest

from equipoise.core.escaping import latex as escaped
from equipoise.report import collect, paper_table, render_latex
from equipoise.report.render.paper import Grid
from equipoise.report.render.tables import Cell


def test_a_table_in_full():
    rows = ((Cell("a_b"), Cell("71.2", "± 0.8", bold=True)), (Cell("c"), Cell("–")))
    grid = Grid("my study", "50 % & more.", ("Method", "Accuracy\u00a0%"), (False, True), rows)
    assert (
        render_latex(grid)
        == r"""% needs \usepackage{booktabs}
\begin{table}
\centering\footnotesize
\caption{50 \% \& more.}
\label{tab:my-study}
\begin{tabular}{@{}lr@{}}
\toprule
Method & Accuracy~\% \\
\midrule
a\_b & \textbf{71.2} $\pm$ 0.8 \\
c & -- \\
\bottomrule
\end{tabular}
\end{table}
"""
    )


@pytest.mark.parametrize("text", ["\\input{/etc/passwd}", "}% comment", "a & b \\\\", "$x^2$ ~ _#", "two\nlines"])
def test_hostile_text_stays_text(text):
    """Every character that means something to LaTeX stands behind a backslash, or is a command of our own."""
    left = re.sub(
        r"\\(textbackslash|textasciitilde|textasciicircum|textless|textgreater)\{\}|\\[&%$#_{}]", "", escaped(text)
    )
    assert not re.search(r"[\\&%$#_{}~^\n]", left)


def test_every_row_has_as_many_cells_as_the_head(store):
    study = store.read_json("study.json")
    study["methods"][1]["name"], study["question"] = "a & b \\\\ % {", "Why?\n\n\\end{table}"
    store.write_json("study.json", study)
    text = render_latex(paper_table(collect(store)))
    body = text.partition("\\toprule")[2].partition("\\bottomrule")[0]
    counts = {len(re.findall(r"(?<!\\)&", line)) for line in body.splitlines() if line.endswith("\\\\")}
    assert len(counts) == 1
    assert text.count("\\end{table}") == 1


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no LaTeX on this machine")
def test_latex_takes_it(results, tmp_path):
    head = "\\documentclass{article}\\usepackage{booktabs}\\begin{document}"
    document = f"{head}{render_latex(paper_table(results))}\\end{{document}}"
    (tmp_path / "x.tex").write_text(document)
    subprocess.run(["pdflatex", "-halt-on-error", "x.tex"], cwd=tmp_path, check=True, capture_output=True)
