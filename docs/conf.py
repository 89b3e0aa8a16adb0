"""The site: Sphinx, with everything that a page needs inside the built folder."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

import refkernel  # noqa: E402

project = "refkernel"
author = "The refkernel developers"
copyright = author
release = version = refkernel.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "api_pages",
    "command_pages",
    "drawn_rooms",
    "inventories",
    "measured_pages",
    "mathml",
    "repository_links",
]
exclude_patterns = [
    "_build",
    "measured/tables",
    "measured/pages",
    "_ext",
    "gallery/*.py",
    "gallery/*.ipynb",
    "gallery/*.zip",
    "gallery/*.md5",
    "gallery/*.json",
]
root_doc = "index"
nitpicky = False

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_fence_as_directive = ["mermaid"]
myst_heading_anchors = 3
html_math_renderer = "mathml"
intersphinx_mapping = {}  # filled by inventories.py
myst_links_external_new_tab = False

autosummary_generate = False
autodoc_typehints = "none"
autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
viewcode_line_numbers = True
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"plot_",
    "within_subsection_order": "gallery_order.key",
    "nested_sections": False,
    "abort_on_example_error": True,
    "only_warn_on_example_error": False,
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "remove_config_comments": True,
    "min_reported_time": 10_000,
    "write_computation_times": False,
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("refkernel",),
    "image_scrapers": ("matplotlib",),
    "matplotlib_animations": False,
    "thumbnail_size": (480, 336),
    "plot_gallery": True,
}

html_theme = "pydata_sphinx_theme"
html_title = "refkernel"
html_static_path = ["_static"]
html_extra_path = ["_extra"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "refkernel"},
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "navigation_with_keys": True,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_context = {"default_mode": "auto"}
html_sidebars = {"index": [], "explorer": [], "api/**": ["sidebar-nav-bs"]}

warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")
