"""Snapshots: all state that a training run needs to continue exactly."""

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np

from luong_keras.ops.devices import generator_states, set_generator_states
from luong_keras.training.monitoring import check_finite
from luong_keras.training.optimizers import NONFINITE
from luong_keras.training.snapshot_file import read_arrays, write_arrays


@dataclass(frozen=True)
class Snapshot:
    """The state of a run between two batches.

    The file is a plain `.npz`: one array per variable, named by the variable's
    path, and a JSON header with the format version, the names of the arrays,
    the position and the callback states. Reading it executes nothing.

    The arrays hold all of `model.variables` (with the states of the random
    seeds, which weight files drop), the optimizer's variables and the sums of
    the metrics, on torch also the states of its generators, for layers without
    a seed. The position is the number of batches seen, not
    `optimizer.iterations`, which does not change when loss scaling skips a
    step, and counts in larger units when gradients are accumulated.

    Attributes:
        position: The number of batches that the run has seen.
        arrays: The variables, by `model/…`, `optimizer/…`, `metrics/…`, and the
            states of torch's generators, by `torch/…`.
        callbacks: The states of the callbacks, by class and monitored value.
        steps_per_epoch: The number of batches per epoch; `None` if unknown.

    Example:
        >>> import keras, tempfile, pathlib
        >>> model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
        >>> model.compile("sgd", "mse")
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "snapshot.npz"
        >>> Snapshot.capture(model, position=7).write(path)
        >>> Snapshot.read(path).position
        7
    """

    position: int
    arrays: Mapping[str, np.ndarray]
    callbacks: Mapping[str, dict[str, Any]]
    steps_per_epoch: int | None = None

    @classmethod
    def capture(
        cls,
        model: keras.Model,
        position: int,
        callbacks: Sequence[keras.callbacks.Callback] = (),
        steps_per_epoch: int | None = None,
    ) -> "Snapshot":
        """Copy the state of a compiled model and its callbacks.

        On JAX, inside `fit`, take the model from a callback's `self.model`,
        which updates the variables.

        Args:
            model: The model that is trained.
            position: The number of batches seen.
            callbacks: The callbacks; only the state of those with `get_state`
                is saved.
            steps_per_epoch: The number of batches per epoch.

        Returns:
            The snapshot.
        """
        make_optimizer_variables(model)
        arrays = {
            name: keras.ops.convert_to_numpy(variable)
            for name, variable in _name_variables(
                model, "model", "optimizer", "metrics"
            ).items()
        }
        for number, state in enumerate(generator_states()):
            arrays[f"torch/{number}"] = state
        states = {
            name: callback.get_state()
            for name, callback in _stateful_callbacks(callbacks).items()
        }
        return cls(position, arrays, states, steps_per_epoch)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the file; a crash leaves the old file or the new one.

        The previous snapshot is kept too, see `previous_path`.

        Args:
            path: The file, usually `snapshot.npz`.

        Raises:
            NonFiniteError: If a weight is NaN or infinite. Nothing is written.
        """
        check_finite(self.arrays)
        header = {
            "position": self.position,
            "callbacks": self.callbacks,
            "steps_per_epoch": self.steps_per_epoch,
        }
        write_arrays(path, header, self.arrays)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> "Snapshot":
        """Read and check a file.

        Args:
            path: A file made by `write`.

        Returns:
            The snapshot.

        Raises:
            FileNotFoundError: If the file does not exist.
            ValueError: If the file is damaged or of another format version.
        """
        header, arrays = read_arrays(path)
        return cls(
            header["position"],
            arrays,
            header["callbacks"],
            header["steps_per_epoch"],
        )

    def apply(
        self,
        model: keras.Model,
        callbacks: Sequence[keras.callbacks.Callback] = (),
        path: str | os.PathLike[str] = "",
    ) -> None:
        """Restore the state of the model, its optimizer and the callbacks.

        A callback that the snapshot does not contain keeps its state.

        Args:
            model: A model built and compiled like the captured one.
            callbacks: The callbacks to restore.
            path: The path of the snapshot, for the message.

        Raises:
            ValueError: If variables are missing, left over or of other
                shapes. No variable is assigned then.
        """
        make_optimizer_variables(model)
        self._assign_arrays(model, ("model", "optimizer"), path)
        # Earlier versions wrote only the names of the classes.
        old_names = _stateful_callbacks(callbacks, with_monitor=False)
        named = _stateful_callbacks(callbacks)
        for old_name, (name, callback) in zip(
            old_names, named.items(), strict=True
        ):
            state = self.callbacks.get(name, self.callbacks.get(old_name))
            if state is not None:
                callback.set_state(state)
        set_generator_states(self.generator_states)

    @property
    def generator_states(self) -> list[np.ndarray]:
        """The states of torch's generators; [] on other backends."""
        return [
            state
            for name, state in self.arrays.items()
            if name.startswith("torch/")
        ]

    def apply_metrics(
        self, model: keras.Model, path: str | os.PathLike[str] = ""
    ) -> None:
        """Restore the sums of the metrics of an unfinished epoch.

        Args:
            model: The compiled model, after its metrics were built.
            path: The path of the snapshot, for the message.

        Raises:
            ValueError: If the model has other metrics.
        """
        self._assign_arrays(model, ("metrics",), path)

    def _assign_arrays(
        self,
        model: keras.Model,
        groups: Sequence[str],
        path: str | os.PathLike[str],
    ) -> None:
        prefixes = tuple(f"{group}/" for group in groups)
        saved = {
            name: array
            for name, array in self.arrays.items()
            if name.startswith(prefixes)
        }
        variables = _name_variables(model, *groups)
        if set(saved) != set(variables):
            # An earlier model of this process may have taken the plain names.
            saved = remove_counters(saved)
            variables = remove_counters(variables)
        check_match(saved, variables, path)
        for name, variable in variables.items():
            variable.assign(saved[name])


def make_optimizer_variables(model: keras.Model) -> None:
    """Make the optimizer's variables, unless it has them."""
    if getattr(model, "optimizer", None) is None:
        raise ValueError(
            "A snapshot holds the optimizer's state, so the model must be "
            f"compiled. Received: {model.name!r} without an optimizer. Call "
            "`model.compile(...)` first."
        )
    if not model.optimizer.built:
        model.optimizer.build(model.trainable_variables)


def _name_variables(
    model: keras.Model, *groups: str
) -> dict[str, keras.Variable]:
    """Name the variables of groups by `group/path`."""
    variables = {
        "model": model.variables,
        "optimizer": [
            variable
            for variable in model.optimizer.variables
            if NONFINITE not in variable.name
        ],
        "metrics": model.metrics_variables,
    }
    return with_unique_names(
        (f"{group}/{variable.path}", variable)
        for group in groups
        for variable in variables[group]
    )


def _stateful_callbacks(
    callbacks: Iterable[keras.callbacks.Callback], with_monitor: bool = True
) -> dict[str, keras.callbacks.Callback]:
    """Name callbacks by their class and, if they have one, their monitor."""

    def name_callback(callback: keras.callbacks.Callback) -> str:
        monitor = getattr(callback, "monitor", None) if with_monitor else None
        return type(callback).__name__ + (f"({monitor})" if monitor else "")

    return with_unique_names(
        (name_callback(callback), callback)
        for callback in callbacks
        if hasattr(callback, "get_state")
    )


def check_states(callbacks: Iterable[keras.callbacks.Callback]) -> None:
    """Check that a snapshot can hold and restore the states of callbacks.

    Args:
        callbacks: Callbacks, with or without states.

    Raises:
        TypeError: If JSON cannot hold a state, or `set_state` is missing.
    """
    for name, callback in _stateful_callbacks(callbacks).items():
        try:
            json.dumps(callback.get_state())
            _ = callback.set_state
        except (TypeError, AttributeError) as error:
            raise TypeError(
                f"The callback {name} has a `get_state`, whose result JSON "
                "must be able to hold (numbers, texts, lists, dicts), and must "
                f"have a `set_state`. Received: {error}."
            ) from error


# The number that Keras adds to a name already used in the process.
_COUNTER = re.compile(r"_\d+(?=[/_]|$)")
_OPTIMIZER = re.compile(r"^optimizer/([^/]+)/")


def remove_counters(values: Mapping[str, Any]) -> dict[str, Any]:
    """Remove the counters from the names, and keep the order.

    Keras numbers repeated names within a process, so a second model built by
    the same code has other names. Keras 3.15 also changed the default names of
    optimizers, such as `SGD` to `clipped_sgd`, and `adamw` to `adam_w`.

    Args:
        values: Values by name.

    Returns:
        The same values by names without counters.

    Example:
        >>> remove_counters({"dense_3/kernel": "a", "dense_4/kernel": "b"})
        {'dense/kernel': 'a', 'dense/kernel#2': 'b'}
    """
    return with_unique_names(
        (
            _OPTIMIZER.sub(
                _plain_optimizer, _COUNTER.sub("", name.split("#")[0])
            ),
            value,
        )
        for name, value in values.items()
    )


def _plain_optimizer(match: re.Match[str]) -> str:
    name = match[1].lower().replace("_", "").removeprefix("clipped")
    return f"optimizer/{name}/"


def with_unique_names(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Build a dict with unique names: a repeated name becomes `name#2`.

    Args:
        pairs: Names and values.

    Returns:
        A dict with one entry per pair.
    """
    counts: dict[str, int] = {}
    result = {}
    for name, value in pairs:
        counts[name] = counts.get(name, 0) + 1
        suffix = f"#{counts[name]}" if counts[name] > 1 else ""
        result[name + suffix] = value
    return result


def check_match(
    saved: Mapping[str, np.ndarray],
    variables: Mapping[str, keras.Variable],
    path: str | os.PathLike[str],
) -> None:
    """Check that the names and shapes of arrays and variables agree.

    Args:
        saved: The arrays of a snapshot.
        variables: The variables of a model.
        path: The path of the snapshot, for the message.

    Raises:
        ValueError: With all differences, if any exist.
    """
    problems = [
        ("not in the snapshot", sorted(set(variables) - set(saved))),
        ("only in the snapshot", sorted(set(saved) - set(variables))),
        (
            "of another shape",
            [
                f"{name} {tuple(saved[name].shape)} in the snapshot, "
                f"{tuple(variables[name].shape)} in the model"
                for name in sorted(set(saved) & set(variables))
                if tuple(saved[name].shape) != tuple(variables[name].shape)
            ],
        ),
    ]
    lines = [
        f"\n  {problem}: {', '.join(names)}"
        for problem, names in problems
        if names
    ]
    if lines:
        raise ValueError(
            f"The snapshot {str(path)!r} belongs to another model. Received "
            f"variables{''.join(lines)}\nBuild and compile the model as the "
            "run's configuration says, or begin a new run folder."
        )
