"""Sphinx's settings. Nothing here may come from a network: pages are read from a folder."""

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
