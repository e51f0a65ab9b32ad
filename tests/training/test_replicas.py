"""Models under a strategy of TensorFlow with two replicas."""

import pytest

from tests.training.processes import answers, in_a_process

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("replicas")
    return answers(in_a_process("replicas_run", folder, "plain", "refused"))


def test_layers_train_with_a_loss_and_an_optimizer_of_keras(found):
    assert found["plain"] < 1e-6


@pytest.mark.parametrize("part", ["loss", "optimizer", "callback", "fit"])
def test_several_replicas_are_refused(found, part):
    error = found["refused"][part]
    assert "Expected: one replica. Received: 2, of a MirroredS" in error
    assert "--backend jax --devices 2" in error
