"""Generated parts of the documentation: reference, support tables, plots and pictures.

``hooks`` gives them to mkdocs; ``tools/pages.py`` writes and checks them without it.
"""
