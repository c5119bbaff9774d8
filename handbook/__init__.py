"""The documentation site: what mkdocs makes of `docs/`, the docstrings and the registries.

python -m mkdocs build --strict      the folder site/, which opens without a network

`mkdocs.yml` has the navigation. `hooks.py` is called by mkdocs; the other modules make the pages
of the reference and turn links into the repository into links of the site.
"""
