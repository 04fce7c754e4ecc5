"""The site: `make docs` builds it from the pages of this folder into docs/_build."""

import os
import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE / "_ext")]
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pictures  # noqa: E402
from source_pages import linkcode_resolve  # noqa: E402, F401

import skpursuit  # noqa: E402

project = "skpursuit"
author = "The skpursuit developers"
copyright = "The skpursuit developers, BSD-3-Clause"
version = release = skpursuit.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.linkcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "flowchart",
    "source_pages",
]
exclude_patterns = ["_build", "gallery/*.py", "gallery/*.ipynb", "gallery/*.json"]
nitpicky = True
nitpick_ignore_regex = [("py:.*", ".*")]  # types in numpydoc sections are words; links of pages are checked
suppress_warnings = ["config.cache"]  # the gallery is sorted by an object

myst_enable_extensions = ["colon_fence", "attrs_inline"]
myst_heading_anchors = 3
autosummary_generate = True
numpydoc_show_class_members = False
numpydoc_validation_checks: set[str] = set()
autodoc_typehints = "none"
highlight_language = "none"
templates_path = ["_templates"]
copybutton_exclude = ".linenos, .gp, .go"

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "remove_config_comments": True,
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,
    "show_signature": False,
    "plot_gallery": "True",
    "min_reported_time": 1000,
    "reference_url": {},
}

html_theme = "pydata_sphinx_theme"
html_context = {"default_mode": "auto"}
html_title = "skpursuit"
html_static_path = ["_static"]
html_extra_path = ["llms.txt"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "skpursuit"},
    "show_toc_level": 2,
    "header_links_before_dropdown": 5,
    "navbar_align": "left",
    "footer_start": ["copyright"],
    "footer_end": [],
    "use_edit_page_button": False,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "github-dark-high-contrast",
}
html_sidebars = {"index": [], "paper": [], "start": [], "gallery/*": ["sidebar-nav-bs"]}


def plain_text(app, what, name, obj, options, lines):
    """Docstrings are written to be read in a terminal: bars and trailing underscores mean nothing in them."""
    for i, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...", "..", ":")):
            lines[i] = re.sub(r"(\w)_(?=[\s,.;)*]|$)", r"\1\\_", line.replace("|", "\\|"))


def skipped(app, what, name, obj, skip, options):
    """scikit-learn's plumbing is described in its own pages."""
    return (
        True if re.fullmatch(r"set_\w+_request|get_metadata_routing|set_output|[gs]et_params", name) else None
    )


def setup(app):
    """Draw the pictures of measurements anew from their tables."""
    app.connect("builder-inited", lambda app: pictures.draw_all())
    app.connect("autodoc-process-docstring", plain_text, priority=900)
    app.connect("autodoc-skip-member", skipped)
