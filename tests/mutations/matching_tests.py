"""Tests that could notice a mistake in a module, the closest first.

They are found by the imports of the package and of its tests, and by the
layout: the tests of `layers/embedding.py` are in
`tests/layers/test_embedding.py`.
"""

import ast
from collections import deque
from pathlib import Path

TESTS = "tests"


class ImportGraph:
    """Imports between the modules of the package and its tests.

    Args:
        root: The folder that contains the package and the folder `tests`.
        package: The name of the package.
    """

    def __init__(self, root: Path, package: str):
        self.package = package
        self.paths = {
            _dotted(path.relative_to(root)): path
            for folder in (package, TESTS)
            for path in sorted((root / folder).rglob("*.py"))
        }
        trees = {
            name: ast.parse(path.read_text(encoding="utf-8"))
            for name, path in self.paths.items()
        }
        self._defined = {name: _defined(tree) for name, tree in trees.items()}
        self._importers: dict[str, set[str]] = {name: set() for name in trees}
        for name, tree in trees.items():
            for other in self._imports(name, tree):
                self._importers[other].add(name)

    def tests_of(self, module: str) -> list[str]:
        """Return the paths of the test files for a module, closest first.

        Args:
            module: Its path inside the package, such as `layers/encoder.py`.

        Returns:
            First the tests that mirror the module; then the tests that import
            it, by the number of imports in between and by the number of times
            they mention its names; last the tests that import the whole
            package and may walk it.
        """
        dotted = _dotted(Path(self.package, module))
        public = [n for n in self._defined[dotted] if not n.startswith("_")]
        distances = self._distances(dotted)
        whole = {n: len(self.paths) for n in self._importers[self.package]}
        folder = Path(TESTS, module).parent
        found = []
        for name, path in self.paths.items():
            test = Path(*path.parts[-len(name.split(".")) :])
            if not test.name.startswith("test_"):
                continue
            mirrored = test == folder / f"test_{Path(module).name}" or (
                folder / Path(module).stem in test.parents
            )
            distance = distances.get(name, whole.get(name))
            if mirrored or distance is not None:
                text = path.read_text(encoding="utf-8")
                mentions = sum(text.count(word) for word in public)
                order = (not mirrored, distance or 0, -mentions)
                found.append((order, test.parent != folder, test.as_posix()))
        return [test for *_, test in sorted(found)]

    def _distances(self, module):
        distances, queue = {module: 0}, deque([module])
        while queue:
            name = queue.popleft()
            for importer in sorted(self._importers[name]):
                if importer not in distances:
                    distances[importer] = distances[name] + 1
                    queue.append(importer)
        return distances

    def _imports(self, name, tree):
        aliases, attributes = {}, []
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute):
                attributes.append((getattr(node.value, "id", None), node.attr))
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    if alias.asname or "." not in alias.name:
                        aliases[alias.asname or alias.name] = alias.name
                    elif alias.name in self.paths:
                        yield alias.name
            elif isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    yield from self._modules_of(node.module or "", alias.name)
        for owner, attribute in attributes:
            if aliases.get(owner) in self.paths:
                yield from self._modules_of(aliases[owner], attribute)
        folder = name.rpartition(".")[0]
        # Not tests/conftest.py: every test would seem to import its imports.
        if (
            folder.startswith(f"{TESTS}.")
            and f"{folder}.conftest" in self.paths
        ):
            yield f"{folder}.conftest"

    def _modules_of(self, owner, name):
        """Return the modules that define a name of a module or package.

        Packages re-export names of their modules, by imports or on first use,
        so the modules below a package are searched.
        """
        if f"{owner}.{name}" in self.paths:
            return [f"{owner}.{name}"]
        if owner not in self.paths:
            return []
        below = [
            module
            for module in self.paths
            if module.startswith(f"{owner}.") and name in self._defined[module]
        ]
        return below if name not in self._defined[owner] and below else [owner]


def _dotted(path):
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _defined(tree):
    """Return the names that a module defines, without its imports."""
    names = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            names.update(
                n.id
                for n in ast.walk(node)
                if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
            )
    return names
