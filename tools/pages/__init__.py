"""The parts of the documentation that are generated: the reference, the tables of support, plots and pictures.

``hooks`` gives them to mkdocs; ``tools/pages.py`` writes and checks them without it.
"""
