"""The site of the documentation, which `make docs` builds with Sphinx.

The pages are Markdown that reads well in the repository too. For the site,
links that leave this folder are rewritten: to a page with the same text, or
to one that shows the file.
"""

import inspect
import os
import re
import shutil
import sys
from pathlib import Path

from docutils import nodes
from latex2mathml.converter import convert

import luong_keras

DOCS = Path(__file__).parent
ROOT = DOCS.parent

project = "luong_keras"
copyright = "the authors of luong_keras"
release = version = luong_keras.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "reproduction"]

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
# A notebook is run again when its code has changed.
nb_execution_mode = "cache"
nb_execution_cache_path = str(ROOT / "build" / "notebooks")
nb_execution_timeout = 300
nb_execution_raise_on_error = True

autosummary_ignore_module_all = False
autosummary_imported_members = True
autodoc_typehints = "none"
autodoc_inherit_docstrings = False
autodoc_member_order = "bysource"
# A name in backticks leads to its page, where it has one.
default_role = "py:obj"
napoleon_use_ivar = True
napoleon_custom_sections = [
    ("Call arguments", "params_style"),
    "Output",
    "Masking",
]

html_theme = "furo"
html_title = f"luong_keras {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_math_renderer = "mathml"
html_show_sourcelink = False
html_copy_source = False

# Documents outside of this folder that are pages of the site.
GENERATED = DOCS / "generated"
PAGES = {
    "README.md": DOCS / "index.md",
    "CHANGELOG.md": GENERATED / "changelog.md",
    "CONTRIBUTING.md": GENERATED / "contributing.md",
    "SECURITY.md": GENERATED / "security.md",
    "benchmarks/README.md": GENERATED / "benchmarks.md",
    "export/README.md": GENERATED / "deployment.md",
    "export/RUNBOOK.md": GENERATED / "runbook.md",
}
PAGES = {ROOT / name: page for name, page in PAGES.items()}


def _shown(path):
    """Writes the page that shows a file or lists a folder; returns its path."""
    name = path.relative_to(ROOT)
    page = GENERATED / "source" / f"{name}.md"
    if path.is_dir():
        text = "".join(f"- `{n}`\n" for n in sorted(os.listdir(path)))
    else:
        language = {".py": "python", ".yaml": "yaml"}.get(path.suffix, "text")
        source = os.path.relpath(path, page.parent)
        text = f"```{{literalinclude}} {source}\n:language: {language}\n```\n"
    page.parent.mkdir(parents=True, exist_ok=True)
    header = f"---\norphan: true\nnosearch: true\n---\n# {name}\n\n"
    page.write_text(header + text)
    return page


def _with_links_of_the_site(text, document, page):
    """The text of a document as that of a page of the site.

    Args:
        text: Markdown.
        document: the path that its links start from.
        page: the path of the page.

    Returns:
        The text with every relative link rewritten, and pages named by their
        titles.
    """
    text = re.sub(r"\[[\w./]+\.md\]\((?=[\w./]+\.md)", "[](", text)

    def rewritten(match):
        target, _, anchor = match[1].partition("#")
        path = (document.parent / target).resolve()
        if not target or ":" in target or not path.exists():
            return match[0]  # Sphinx reports what leads nowhere.
        if path in PAGES:
            path = PAGES[path]
        elif not path.is_relative_to(DOCS):
            path, anchor = _shown(path), ""
        elif path.is_relative_to(DOCS / "reproduction"):
            path = DOCS / "reproduction.md"
        link = os.path.relpath(path, page.parent)
        return f"]({link}#{anchor})" if anchor else f"]({link})"

    return re.sub(r"\]\(([^)\s]+)\)", rewritten, text)


def _page_text(page):
    """The text of a page that is not generated; the first is the README."""
    text = page.read_text(encoding="utf-8")
    text = _with_links_of_the_site(text, page, page)
    if page.name == "index.md":
        readme = ROOT / "README.md"
        start = readme.read_text(encoding="utf-8")
        text = _with_links_of_the_site(start, readme, page) + text
    return text


def _remove_pages_of_names(app, config):
    """Removes the API pages, before autosummary writes those that exist."""
    shutil.rmtree(GENERATED / "api", ignore_errors=True)


def _write_generated_pages(app):
    sys.path.insert(0, str(DOCS))
    import settings_page

    # Pages of files that are gone would stay, and fail the build.
    shutil.rmtree(GENERATED / "source", ignore_errors=True)
    GENERATED.mkdir(exist_ok=True)
    for document, page in PAGES.items():
        if page.parent == GENERATED:
            text = document.read_text(encoding="utf-8")
            page.write_text(_with_links_of_the_site(text, document, page))
    for page in (*DOCS.glob("*.md"), *DOCS.glob("notebooks/*.ipynb")):
        _page_text(page)  # writes the pages that it links to
    (GENERATED / "settings.md").write_text(settings_page.text())


def _read_page(app, name, content):
    page = Path(app.env.doc2path(name))
    if not page.is_relative_to(GENERATED):
        content[0] = _page_text(page)


def _as_restructured_text(app, what, name, thing, options, lines):
    """Rewrites our docstrings, which are Markdown, for reStructuredText."""
    text = "\n".join(lines)
    # An example that is not indented is no part of its heading.
    text = re.sub(r"(?m)^(Examples?:)\n(?=>>> )", r"\1\n\n", text)
    # Names of arguments on several lines.
    text = re.sub(r"(?<=[\w*],)\n +(?=[\w*, \n]+:\s)", " ", text)
    # A description such as `K.`, which would be the number of a list.
    text = re.sub(r"(?m)^( +[\w*, ]+: )(?=[A-Za-z]+\.(\s|$))", r"\1\\", text)
    # Formulas and code, indented.
    text = re.sub(r"(?m)^(\S.*):\n\n(?=    )", r"\1::\n\n", text)
    # Plurals, as in `Score`s.
    text = re.sub(r"(`[^`\n]+`)(?=[a-z])", r"\1\\ ", text)
    # Sizes of sets and norms, as in |A ∩ S|.
    text = re.sub(r"(?<![|`])\|(\w[^|`\n]*)\|(?!\|)", r"\|\1\|", text)
    lines[:] = text.split("\n")


def _is_left_out(app, what, name, thing, skip, options):
    """Leaves out fields of named tuples, which their class describes."""
    return True if type(thing).__name__ == "_tuplegetter" else None


def _signature(app, what, name, thing, options, signature, returned):
    """The arguments of a class whose base takes any arguments in `__new__`."""
    if what == "class" and "__init__" in vars(thing):
        arguments = list(inspect.signature(thing.__init__).parameters.values())
        signature = str(inspect.Signature(arguments[1:]))
    return signature, None


# Of the theme, what a keyboard or a screen reader misses.
ACCESSIBLE = {
    "<pre>": '<pre tabindex="0">',
    '<div class="table-wrapper': '<div tabindex="0" class="table-wrapper',
    '<div class="math-wrapper': '<div tabindex="0" class="math-wrapper',
    '<th class="head"><p></p></th>': "<td></td>",
    'class="caption" role="heading"><': (
        'class="caption" role="heading" aria-level="2"><'
    ),
    '<aside class="sidebar': '<aside aria-label="Pages" class="sidebar',
    '<aside class="toc': '<aside aria-label="This page" class="toc',
}


def _make_accessible(app, error):
    for path in Path(app.outdir).rglob("*.html"):
        html = path.read_text(encoding="utf-8")
        for old, new in ACCESSIBLE.items():
            html = html.replace(old, new)
        path.write_text(html, encoding="utf-8")


def _write_formula(translator, node):
    """MathML, which browsers draw by themselves."""
    display = "block" if isinstance(node, nodes.math_block) else "inline"
    translator.body.append(convert(node.astext(), display=display))
    raise nodes.SkipNode


def setup(app):
    """Connects what is above."""
    app.connect("config-inited", _remove_pages_of_names)
    app.connect("builder-inited", _write_generated_pages)
    app.connect("source-read", _read_page)
    app.connect("autodoc-process-docstring", _as_restructured_text, 0)
    app.connect("autodoc-process-signature", _signature)
    app.connect("autodoc-skip-member", _is_left_out)
    app.connect("build-finished", _make_accessible)
    renderer = (_write_formula, None)
    app.add_html_math_renderer("mathml", renderer, renderer)
