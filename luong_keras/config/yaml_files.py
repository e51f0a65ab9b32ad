"""Reading of settings files, YAML or JSON."""

import functools
import json
from pathlib import Path
from typing import Any

from luong_keras.missing_package import needs


def read_yaml(path: Path) -> Any:
    """Return the content of a YAML or JSON file.

    All values of YAML but null are texts.

    Raises:
        FileNotFoundError: If the file does not exist.
        ValueError: If the file cannot be read, or is not YAML or JSON.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise FileNotFoundError(
            f"Expected: a file of settings, YAML or JSON. Received: {path}, "
            "which does not exist."
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} cannot be read: {error}.") from None
    if path.suffix == ".json":
        return _parse_json(path, text)
    return _parse_yaml(path, text)


def _parse_json(path, text):
    try:
        return json.loads(
            text, object_pairs_hook=functools.partial(build_section, path)
        )
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"{path} is not JSON: {error}.") from None


def build_section(path: Path, pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    """Return a section as a dictionary, and refuse repeated names."""
    names = [name for name, _ in pairs]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise ValueError(
            f"Expected: in {path}, each name once in its section. Received: "
            f"{repeated!r} twice. Leave one out."
        )
    return dict(pairs)


def _parse_yaml(path, text):
    with needs("pyyaml"):
        import yaml

    null, merge = "tag:yaml.org,2002:null", "tag:yaml.org,2002:merge"

    class Loader(yaml.SafeLoader):
        # Each setting knows its type, and YAML would read `no` as false, 010
        # as 8 and 1:30 as 90.
        yaml_implicit_resolvers = {
            first: [pair for pair in pairs if pair[0] in (null, merge)]
            for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
        }
        yaml_constructors = {null: yaml.SafeLoader.construct_yaml_null}

        def construct_mapping(self, node, deep=False):
            super().construct_mapping(node)
            return build_section(path, self.construct_pairs(node))

    try:
        # A few nested aliases of lists could expand beyond the memory.
        for event in yaml.parse(text):
            if isinstance(event, yaml.CollectionStartEvent) and event.anchor:
                raise ValueError(
                    f"Expected: in {path} only anchors of single values. "
                    f"Received: `&{event.anchor:.80}` of a list or section, in "
                    f"line {event.start_mark.line + 1}. Write it out."
                )
        return yaml.load(text, Loader)
    except (yaml.YAMLError, RecursionError) as error:
        message = " ".join(str(error).split())
        raise ValueError(f"{path} is not YAML: {message}.") from None
