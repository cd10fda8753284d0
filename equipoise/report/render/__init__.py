"""A report in its forms: terminal, Markdown, LaTeX, CSV and the page."""
