import keras
import numpy as np
import pytest

from luong_keras.training.optimizers import make_optimizer


def test_the_norm_over_all_variables_is_clipped():
    variables = [keras.Variable([0.0]), keras.Variable([0.0, 0.0])]
    optimizer = make_optimizer("sgd", learning_rate=1.0, clip_norm=5.0)
    # The norm of (6, 0, 8) is 10.
    gradients = [keras.ops.array([6.0]), keras.ops.array([0.0, 8.0])]
    optimizer.apply(gradients, variables)
    np.testing.assert_allclose(variables[0], [-3.0], rtol=1e-6)
    np.testing.assert_allclose(variables[1], [0.0, -4.0], rtol=1e-6)


def test_options_reach_the_optimizer():
    optimizer = make_optimizer("adam", 0.25, clip_norm=None, weight_decay=0.5)
    assert isinstance(optimizer, keras.optimizers.Adam)
    assert float(optimizer.learning_rate) == 0.25
    assert optimizer.global_clipnorm is None
    assert optimizer.weight_decay == 0.5


def test_an_unknown_name_is_refused():
    with pytest.raises(ValueError, match="name='adagrad'"):
        make_optimizer("adagrad")
