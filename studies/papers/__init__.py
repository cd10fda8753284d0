"""The papers' tables and figures as studies: `python -m studies.papers` writes them to studies/full.

Each module has tables of one paper: the numbers as they are printed, and how each row is trained here.
"""
