"""Sphinx's settings. Nothing here may come from a network: pages are read from a folder."""

from functools import cache

from sphinx.addnodes import toctree as toctree_node

project = "argosy"
author = "the argosy authors"
project_copyright = "Apache License 2.0"
extensions = ["myst_nb"]
html_theme = "furo"
html_title = "argosy"
html_static_path = ["../gallery"]  # the thumbnails
html_copy_source = False
html_use_index = False
html_permalinks = False  # links that only a mouse can reach
html_show_sourcelink = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}
exclude_patterns = ["tutorials/files/*"]
default_role = "literal"
myst_heading_anchors = 4
myst_links_external_new_tab = False
nb_execution_mode = "off"  # notebooks.py has run them
nb_ipywidgets_js = {}
nb_render_markdown_format = "myst"
nb_merge_streams = True
python_maximum_signature_line_length = 100
toc_object_entries = False
highlight_language = "none"


def setup(app):
    app.connect("html-page-context", _leave_out_headings, priority=400)  # before the theme makes the tree of pages


def _leave_out_headings(app, page, template, context, doctree):
    """The tree of pages shows their titles. For each page it would be made of copies of the headings of all pages,
    which are dropped then: more than a quarter of Sphinx's time."""
    of_all, titles = context["toctree"], _titles(app.env)

    def toctree(**options):
        whole = app.env.tocs
        app.env.tocs = titles if options.get("titles_only") else whole
        try:
            return of_all(**options)
        finally:
            app.env.tocs = whole

    context["toctree"] = toctree


@cache
def _titles(env):
    """The headings of each page without those below its title, but with the lists of pages that stand there."""
    found = {name: toc.deepcopy() for name, toc in env.tocs.items()}
    for toc in found.values():
        for entry in toc.children:
            if len(entry) > 1:
                entry[1][:] = list(entry[1].findall(toctree_node))
                if not entry[1].children:
                    entry.pop(1)
    return found
