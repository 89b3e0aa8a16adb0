"""A page for every public name: what ``__all__`` of refkernel and of its public modules lists, no more and no less."""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

from sphinx.pycode import ModuleAnalyzer

import refkernel

FOLDER = "api"
LOWER = "-function"
MODULES = [name for name in refkernel.__all__ if inspect.ismodule(getattr(refkernel, name))]

GROUPS = {
    "Detectors": ["AutoDetector", "TableDetector", "SVDD", "OneClassSVM", "ReferenceResidual", "ESVDD"],
    "Promises and choices": ["ConformalDetector", "OneClassGridSearch"],
    "In operation": ["Monitor", "suspects", "compare"],
    "Reference kernels": ["ReferenceKernel", "ReferenceMap", "RBF"],
    "Preparing columns": ["TableEncoder", "TargetScaler", "TargetImputer", "windows"],
    "Why a row is flagged": ["explain", "Explanation", "counterfactuals", "Counterfactuals", "report"],
    "Model files": ["save", "load", "read_about", "to_onnx"],
}
"""The order in which the reference lists the names of refkernel; names that it does not know come last."""

BACKLINK = re.compile(rf'href="([^"]*{FOLDER}/([\w.-]+)\.html)#([\w.]+)"')


def write_pages(app):
    """Write the sources of the reference, before Sphinx looks for sources."""
    folder = Path(app.srcdir) / FOLDER
    folder.mkdir(exist_ok=True)
    pages = {"index": _index()} | {f"refkernel.{name}": _module(name) for name in MODULES}
    for owner, name, thing in _objects():
        pages[_page(f"{owner}.{name}")] = _object(owner, name, thing)
    for stale in set(folder.glob("refkernel*.rst")) - {folder / f"{page}.rst" for page in pages}:
        stale.unlink()
    for page, text in pages.items():
        path = folder / f"{page}.rst"
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def _owners():
    return [("refkernel", refkernel), *((f"refkernel.{name}", _imported(name)) for name in MODULES)]


def _imported(name: str):
    return getattr(refkernel, name)


def _objects():
    """Classes and functions with the first module that shows them: top level before submodules."""
    seen = set()
    for owner, module in _owners():
        for name in module.__all__:
            thing = getattr(module, name)
            if (inspect.isclass(thing) or inspect.isfunction(thing)) and id(thing) not in seen:
                seen.add(id(thing))
                yield owner, name, thing


def _home():
    """The public address of each class and function, by identity."""
    return {id(thing): f"{owner}.{name}" for owner, name, thing in _objects()}


@functools.cache
def _page(address: str) -> str:
    """The name of a page: that of what it shows, told apart where only the case of a letter differs, as some file systems ignore it."""
    same = [f"{owner}.{name}" for owner, name, _ in _objects() if f"{owner}.{name}".lower() == address.lower()]
    return address if len(same) < 2 or address != address.lower() else f"{address}{LOWER}"


def _title(text: str) -> str:
    return f"{text}\n{'=' * len(text)}\n\n"


def _table(addresses: list[str]) -> str:
    return ".. autosummary::\n   :nosignatures:\n\n" + "".join(f"   ~{address}\n" for address in addresses) + "\n"


def _tree(pages: list[str]) -> str:
    return ".. toctree::\n   :hidden:\n\n" + "".join(f"   {page.rpartition('.')[2]} <{_page(page)}>\n" for page in pages) + "\n"


def _index() -> str:
    listed = [name for names in GROUPS.values() for name in names]
    here = [name for owner, name, _ in _objects() if owner == "refkernel"]
    groups = {**GROUPS, "Warnings and errors": [name for name in here if name not in listed]}
    text = _title("API reference") + "Every public name, with an example. Names that are not listed here are private and may change.\n\n"
    text += "::\n\n   import refkernel as rk\n\n"
    for title, names in groups.items():
        found = [f"refkernel.{name}" for name in names if name in here]
        text += f"{title}\n{'-' * len(title)}\n\n{_table(found)}" if found else ""
    text += "Modules\n-------\n\n.. list-table::\n   :widths: 30 70\n\n"
    for name in MODULES:
        text += f"   * - :doc:`refkernel.{name}`\n     - {_first_sentence(_imported(name))}\n"
    text += "\nThe shell commands have their own page: :doc:`commands`.\n\n"
    return text + _tree([*(f"refkernel.{name}" for name in [*sorted(here, key=str.lower), *MODULES]), "commands"])


def _first_sentence(thing) -> str:
    return " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())


def _module(name: str) -> str:
    module, address = _imported(name), f"refkernel.{name}"
    text = _title(address) + f".. module:: {address}\n\n" + _prose(inspect.getdoc(module) or "") + "\n\n"
    home = _home()
    things = [getattr(module, public) for public in module.__all__]
    text += ".. currentmodule:: None\n\n" + _table([home[id(thing)] for thing in things if id(thing) in home])
    text += "".join(_data(address, public) for public in module.__all__ if id(getattr(module, public)) not in home)
    return text + _tree([home[id(thing)] for thing in things if id(thing) in home and home[id(thing)].startswith(f"{address}.")])


def _data(address: str, name: str) -> str:
    """A constant or an alias of types, with the text below its assignment."""
    text = _attribute_docs().get(name) or ["An alias for annotations."]
    return f".. py:data:: {address}.{name}\n\n" + "".join(f"   {line}\n" for line in text) + "\n"


def _attribute_docs() -> dict[str, list[str]]:
    names = [module.name for module in pkgutil.walk_packages(refkernel.__path__, "refkernel.") if ".experiments" not in module.name]
    found = {}
    for module in names:
        if ".cli" not in module and "__main__" not in module:
            docs = ModuleAnalyzer.for_module(importlib.import_module(module).__name__).find_attr_docs()
            found |= {attribute: text for (owner, attribute), text in docs.items() if not owner}
    return found


def _object(owner: str, name: str, thing) -> str:
    address = f"{owner}.{name}"
    text = _title(name) + f".. currentmodule:: {owner}\n\n"
    if inspect.isclass(thing):
        text += f".. autoclass:: {name}\n   :members:\n   :inherited-members:\n\n"
    else:
        text += f".. autofunction:: {name}\n\n"
    return text + f".. minigallery:: {address}\n   :add-heading: In the gallery\n   :heading-level: -\n"


def is_ours(app, what, name, thing, skip, options):
    """Skip what scikit-learn, Python and NumPy bring along, and constants of classes."""
    function = getattr(thing, "fget", None) or getattr(thing, "__func__", thing)
    foreign = not inspect.isfunction(function) or not function.__module__.startswith("refkernel")
    return True if what == "class" and foreign else None


def escape_markup(app, what, name, thing, options, lines):
    """Norms as ‖x‖, and names that end in an underscore as text: reStructuredText would take both for markup."""
    for number, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...", ".. ")):
            lines[number] = _prose(line)


def _prose(text: str) -> str:
    """Outside of literals."""
    parts = re.split(r"(``.*?``|`.*?`_?)", text)
    return "".join(part if number % 2 else _escaped(part) for number, part in enumerate(parts))


def _escaped(text: str) -> str:
    return re.sub(r"(?<![\w:\\])(\w+)_(?![\w_])", r"\1\\_", text.replace("||", "‖"))


def correct_backlinks(app, pagename, templatename, context, doctree):
    """Source pages link back by one module's name for all; a page of the reference tells the true name of what it shows."""
    if pagename.startswith("_modules/") and "body" in context:
        context["body"] = BACKLINK.sub(_true_place, context["body"])


def _true_place(link: re.Match) -> str:
    page, address, place = link.groups()
    address = address.removesuffix(LOWER)
    _, name, rest = place.partition("." + address.rpartition(".")[2])
    return f'href="{page}#{address}{rest}"' if name else link.group()


def setup(app):
    app.connect("html-page-context", correct_backlinks)
    app.connect("builder-inited", write_pages, priority=400)
    app.connect("autodoc-skip-member", is_ours)
    app.connect("autodoc-process-docstring", escape_markup, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
