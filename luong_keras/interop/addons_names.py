"""What the names that TensorFlow Addons gives its variables stand for.

A name is a path: `decoder/attention_wrapper/lstm_cell/kernel:0`, or in a
checkpoint `decoder/_cell/kernel/.ATTRIBUTES/VARIABLE_VALUE`. Its end tells
the role of the variable; what stands before depends on the user's model.
"""

import re

_SCORE_WEIGHTS = (
    "attention_v",
    "attention_g",
    "attention_b",
    "attention_score_bias",
)
_CHECKPOINT_LAYER = "_attention_layers"


def roles_of(names, attention_layer=None):
    """Name -> role; a name that tells none is its own role.

    The roles: `cell_0/kernel`, `cell_0/recurrent_kernel`, `cell_0/bias`,
    `cell_1/kernel`, ..., the lowest cell first; `attention_layer/kernel`;
    `memory_layer/kernel`, `query_layer/kernel`, `attention_v`, ....

    Args:
        names: the names, in the order of the variables.
        attention_layer: the name of the attention layer, where it has one of
            its own.
    """
    paths = {name: _path(name) for name in names}
    cells = _cells(paths.values())
    # A mechanism builds some of its kernels in its own name.
    owners = {"LuongAttention", "BahdanauAttention"} | {
        path[-2] for path in paths.values() if path[-1] in _SCORE_WEIGHTS
    }
    roles, own_kernels = {}, []
    for name, path in paths.items():
        scope, owner, leaf = path[:-1], path[-2], path[-1]
        if scope in cells:
            roles[name] = f"cell_{cells.index(scope)}/{leaf}"
        elif leaf in _SCORE_WEIGHTS:
            roles[name] = leaf
        elif owner in (_CHECKPOINT_LAYER, attention_layer or "attention_layer"):
            roles[name] = f"attention_layer/{leaf}"
        elif owner in ("memory_layer", "query_layer"):
            roles[name] = f"{owner}/{leaf}"
        elif owner in owners and leaf == "kernel":
            own_kernels.append(name)
        else:
            roles[name] = name
    # The query's kernel is made inside the wrapper, the memory's outside, or
    # both in one place, the query's listed first.
    own_kernels.sort(key=lambda name: -len(paths[name]))
    if own_kernels and "memory_layer/kernel" not in roles.values():
        roles[own_kernels.pop()] = "memory_layer/kernel"
    return roles | {name: "query_layer/kernel" for name in own_kernels}


def _path(name):
    """The parts of a name, one of them at least before the last."""
    name = name.removesuffix("/.ATTRIBUTES/VARIABLE_VALUE").removesuffix(":0")
    name = name.replace(f"{_CHECKPOINT_LAYER}/0/", f"{_CHECKPOINT_LAYER}/")
    return ("", *name.split("/"))


def _cells(paths):
    """The scopes of the recurrent cells, the lowest first."""
    scopes = [path[:-1] for path in paths if path[-1] == "recurrent_kernel"]

    def number(scope):
        # lstm_cell, lstm_cell_1, ..., or cells/0, cells/1, ...
        digits = re.search(r"\d+$", scope[-1])
        return int(digits.group()) if digits else -1

    return sorted(scopes, key=number)
