"""Operations of each device in a training step that several devices share.

For 1, 2, 4, … JAX devices: the floating-point operations of the compiled step
of one device, the collectives that it waits for, and the seconds of the
compilation. The devices may be parts of a processor, because only the compiler
is timed: `python benchmarks/devices.py --virtual 8`. With `--left-to-xla` the
loss is not divided by hand (see `luong_keras/models/microbatches.py`), to show
the cost of that.
"""

from __future__ import annotations

import argparse
import collections
import os
import re
import time

os.environ.setdefault("KERAS_BACKEND", "jax")

import jax
import keras
import numpy as np
from speed.training_model import training_model

from luong_keras.config.values import with_values
from luong_keras.models import microbatches
from luong_keras.presets import PRESETS
from luong_keras.recipe import devices

COLLECTIVES = re.compile(
    r" (all-reduce|all-gather|all-to-all|collective-permute|reduce-scatter)"
    r"(?:-start)?\("
)


def compiled_step(preset: str, count: int, width: int, units: int | None):
    """Compile a training step for that many devices, and time this."""
    used = devices.share_rows(jax.devices()[:count])
    sizes: dict[str, float] = {"dropout": 0.0}
    if units is not None:
        sizes |= {"units": units, "embedding_size": units}
    config = with_values(
        PRESETS[preset], {f"model.{name}": v for name, v in sizes.items()}
    )
    keras.utils.set_random_seed(1)
    model = training_model(config, jit_compile=True)
    model.optimizer.build(model.trainable_variables)
    rows = config.training.batch_size
    ids = np.ones((rows, width), "int32") * 5
    x = dict.fromkeys(("source", "target_in", "target_out"), ids)
    data = (x, dict.fromkeys(("word", "hits"), ids))
    if used.count > 1:
        layout = keras.distribution.distribution().get_data_layout(ids.shape)
        data = keras.tree.map_structure(
            lambda x: jax.device_put(x, layout.backend_layout), data
        )
    model.train_on_batch(x, data[1])  # Makes all that the first step makes.
    state = [
        [variable.value for variable in variables]
        for variables in (
            model.trainable_variables,
            model.non_trainable_variables,
            model.optimizer.variables,
            model.metrics_variables,
        )
    ]
    lowered = jax.jit(model.train_step).lower(state, data)
    began = time.perf_counter()
    return lowered.compile(), time.perf_counter() - began


def main() -> None:
    """Read the arguments and print a line for each number of devices."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--preset", default="demo", choices=[*PRESETS])
    parser.add_argument("--units", type=int, help="instead of the preset's")
    parser.add_argument("--width", type=int, default=24, help="S and T")
    parser.add_argument("--virtual", type=int, help="parts of the processor")
    parser.add_argument("--left-to-xla", action="store_true")
    given = parser.parse_args()
    if given.virtual:
        jax.config.update("jax_num_cpu_devices", given.virtual)
    if given.left_to_xla:
        microbatches.is_distributed = lambda: False
    print(f"{given.preset}, {jax.devices()[0].device_kind}")
    count, first = 1, None
    while count <= len(jax.devices()):
        step, seconds = compiled_step(
            given.preset, count, given.width, given.units
        )
        flops = step.cost_analysis()["flops"]
        first = first or flops
        found = COLLECTIVES.findall(step.as_text())
        print(
            f"{count:3} devices: {flops / 1e9:8.3f} GFLOP each "
            f"({flops / first:.2f} of one), "
            f"{dict(collections.Counter(found)) or 'no collectives'}, "
            f"compiled in {seconds:.1f} s",
            flush=True,
        )
        count *= 2


if __name__ == "__main__":
    main()
