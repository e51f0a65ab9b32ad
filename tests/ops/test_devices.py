"""`precision="auto"`: the choice, how it is made and its message."""

import types

import keras
import pytest

from luong_keras import TranslationModel
from luong_keras.ops import devices
from tests.layer_checks import small_config


@pytest.fixture
def machine(monkeypatch):
    """Return a function that fakes times of products and lists the calls."""
    timed = []

    def set_times(**seconds):
        def product_seconds(size, dtype):
            timed.append((size, dtype))
            return seconds[dtype]

        devices._faster_precision.cache_clear()
        monkeypatch.setattr(devices, "product_seconds", product_seconds)
        return timed

    yield set_times
    devices._faster_precision.cache_clear()


@pytest.mark.parametrize(
    "float32, bfloat16, chosen",
    [
        (0.0142, 0.0527, "float32"),  # no bfloat16 instructions
        (0.0300, 0.0250, "float32"),  # conversions would cancel the gain
        (0.0300, 0.0201, "float32"),
        (0.0300, 0.0199, "mixed_bfloat16"),
        (0.0300, 0.0100, "mixed_bfloat16"),
    ],
)
def test_bfloat16_is_chosen_if_its_product_is_fast_enough(
    machine, capsys, float32, bfloat16, chosen
):
    machine(float32=float32, bfloat16=bfloat16)
    assert devices.resolve_precision("auto") == chosen
    message = capsys.readouterr().err
    assert message.startswith(
        f"precision: {chosen}, for a product of 512 x 512"
    )
    assert f"{1000 * float32:.1f} ms in float32" in message
    assert f"{1000 * bfloat16:.1f} ms in bfloat16" in message


@pytest.mark.parametrize(
    "capability, half",
    [
        ((7, 5), "float16"),  # T4
        ((8, 0), "bfloat16"),  # A100
        ((9, 0), "bfloat16"),
        (None, "bfloat16"),  # AMD, or no GPU
    ],
)
def test_older_gpus_use_float16(machine, monkeypatch, capability, half):
    """The GPU is faked as the backend describes it."""
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        details = {"compute_capability": capability} if capability else {}
        monkeypatch.setattr(
            tf.config, "get_visible_devices", lambda kind: ["GPU:0"]
        )
        monkeypatch.setattr(
            tf.config.experimental,
            "get_device_details",
            lambda gpu: details,
        )
    elif keras.backend.backend() == "jax":
        import jax

        capability_text = (
            "gfx942" if capability is None else "{}.{}".format(*capability)
        )
        gpu = types.SimpleNamespace(compute_capability=capability_text)
        monkeypatch.setattr(jax, "devices", lambda: [gpu])
    else:
        pytest.skip("torch reports no capability on a CPU")
    timed = machine(float32=0.02, **{half: 0.01})
    assert devices.resolve_precision("auto") == f"mixed_{half}"
    assert timed == [(512, "float32"), (512, half)]


def test_speed_is_measured_once_and_only_for_auto(machine, capsys):
    timed = machine(float32=0.02, bfloat16=0.01)
    for given in ("float32", "float64", "mixed_float16"):
        assert devices.resolve_precision(given) == given
    assert timed == []
    assert {devices.resolve_precision("auto") for _ in range(3)} == {
        "mixed_bfloat16"
    }
    assert timed == [(512, "float32"), (512, "bfloat16")]
    assert capsys.readouterr().err.count("precision:") == 1


def test_products_grow_until_they_can_be_timed(machine, monkeypatch):
    machine(float32=0.0, bfloat16=0.0)
    timed = []

    def product_seconds(size, dtype):
        timed.append((size, dtype))
        return size / 2048 * 0.005

    monkeypatch.setattr(devices, "product_seconds", product_seconds)
    assert devices.resolve_precision("auto") == "float32"
    sizes = [(512, "float32"), (1024, "float32"), (2048, "float32")]
    assert timed == [*sizes, (2048, "bfloat16")]


def test_a_product_is_timed_in_its_precision(monkeypatch):
    multiplied = []
    matmul = keras.ops.matmul

    def recorded(left, right):
        multiplied.append((left.dtype, tuple(left.shape)))
        return matmul(left, right)

    monkeypatch.setattr(devices.ops, "matmul", recorded)
    seconds = devices.product_seconds(16, "bfloat16")
    assert 0 < seconds < 10
    assert {keras.backend.standardize_dtype(d) for d, _ in multiplied} == {
        "bfloat16"
    }
    assert {shape for _, shape in multiplied} == {(16, 16)}


def test_model_uses_the_chosen_precision(machine):
    machine(float32=0.02, bfloat16=0.01)
    model = TranslationModel(small_config(precision="auto"))
    assert model.config.precision == "mixed_bfloat16"
    assert model.decoder.dtype_policy.name == "mixed_bfloat16"
    assert model.projection.variable_dtype == "float32"
