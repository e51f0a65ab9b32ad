"""GPU kernels of all numeric operations, checked without a GPU.

The registry of TensorFlow's wheel lists the GPU kernels on any machine.
Operations on strings, tables and sets of subwords run on the host; all other
operations must have a GPU kernel for their types. JAX lowers a program for CUDA
on any machine.
"""

from collections import Counter

import keras
import numpy as np
import pytest

from luong_keras.config import AttentionConfig
from luong_keras.decoding import beam_search
from luong_keras.models.translation_model import TranslationModel
from luong_keras.training.losses import TranslationLoss
from luong_keras.training.metrics import TokenPerplexity
from luong_keras.training.optimizers import make_optimizer
from tests.layer_checks import small_config

pytestmark = pytest.mark.slow
on_jax = pytest.mark.skipif(
    keras.backend.backend() != "jax", reason="lowers programs of JAX"
)

RAGGED = {
    "RaggedGather",
    "RaggedRange",
    "RaggedTensorToTensor",
    "DenseBincount",
}
GLOBAL = AttentionConfig(kind="global")
CONFIGURATIONS = {
    "global": {"attention": GLOBAL, "tied_embeddings": True},
    "local-p": {"attention": AttentionConfig(half_width=2)},
    "local-m": {"attention": AttentionConfig(alignment="monotonic")},
    "location": {
        "attention": AttentionConfig(kind="global", score_mode="location")
    },
    "none": {"attention": AttentionConfig(kind="none")},
    "bahdanau": {
        "decoder": "bahdanau",
        "recurrence": "gru",
        "attention": AttentionConfig(kind="global", score_mode="concat"),
        "bidirectional": True,
    },
    "authors": {"cell_clip": 50.0, "gradient_clip": 1000.0, "use_bias": False},
    "mixed_bfloat16": {"attention": GLOBAL, "precision": "mixed_bfloat16"},
    "mixed_float16": {"attention": GLOBAL, "precision": "mixed_float16"},
}


def nodes_of(graph):
    """Yield all nodes of a graph and of its functions."""
    yield from graph.node
    for function in graph.library.function:
        yield from function.node_def


def types_of(node, attribute):
    """Return the types that an attribute of a node names."""
    from tensorflow.python.framework import op_def_registry

    value = node.attr[attribute]
    if not (value.type or value.list.type):
        # A SavedModel leaves out default values.
        for each in op_def_registry.get(node.op).attr:
            if each.name == attribute:
                value = each.default_value
    return list(value.list.type) or [value.type]


def kernels_for(node):
    """Return the GPU kernels that accept the types of a node."""
    from tensorflow.python.framework import kernels

    return [
        kernel
        for kernel in kernels.get_registered_kernels_for_op(node.op).kernel
        # A kernel for all devices counts too.
        if kernel.device_type in ("GPU", "DEFAULT")
        and all(
            set(types_of(node, constraint.name))
            <= set(constraint.allowed_values.list.type)
            for constraint in kernel.constraint
        )
    ]


def has_strings(node):
    """Test whether a node has string types, which no GPU supports."""
    import tensorflow as tf
    from tensorflow.python.framework import op_def_registry

    found = [kind for name in node.attr for kind in types_of(node, name)]
    operation = op_def_registry.get(node.op)
    if operation is not None:
        arguments = [*operation.input_arg, *operation.output_arg]
        found += [argument.type for argument in arguments]
    return tf.string.as_datatype_enum in found


def count_missing_kernels(nodes):
    """Count operations without a GPU kernel, and all nodes."""
    nodes = list(nodes)
    missing = Counter(
        node.op
        for node in nodes
        if not has_strings(node) and not kernels_for(node)
    )
    return dict(missing), len(nodes)


def runs_on_the_host(node):
    """Test whether GPU kernels keep all results on the host (int32)."""
    from tensorflow.python.framework import op_def_registry

    found = op_def_registry.get(node.op)
    results = {result.name for result in found.output_arg} if found else set()
    kernels = kernels_for(node)
    return bool(results and kernels) and all(
        results <= set(kernel.host_memory_arg) for kernel in kernels
    )


def bodies_of_loops(graph):
    """Return the nodes of all functions, and the names of loop bodies."""
    functions = graph.library.function
    nodes = {
        function.signature.name: function.node_def for function in functions
    }
    return nodes, [
        node.attr["body"].func.name
        for node in nodes_of(graph)
        if node.op in ("While", "StatelessWhile")
    ]


def loops_over_time(graph):
    """Return the bodies of the loops over time steps."""
    nodes, names = bodies_of_loops(graph)
    return [
        nodes[name]
        for name in names
        if any(node.op == "TensorListGetItem" for node in nodes[name])
    ]


def nodes_in_loops(graph):
    """Return all nodes of loop bodies and of the functions they call."""
    nodes, waiting = bodies_of_loops(graph)
    names, found = set(), []
    while waiting:
        name = waiting.pop()
        if name in names:
            continue
        names.add(name)
        for node in nodes[name]:
            found.append(node)
            for value in node.attr.values():
                called = [value.func, *value.list.func]
                waiting += [each.name for each in called if each.name]
    return found


def make(**changes):
    sizes = {"words": 40, "layers": 2, "reverse_source": False, "dropout": 0.2}
    return TranslationModel(small_config(**sizes, **changes), 0.1)


def compiled_model(name):
    """Return a compiled training model and a batch of NumPy arrays."""
    model = make(**CONFIGURATIONS[name]).training_model
    optimizer = make_optimizer("adam", 1e-3, clip_norm=1.0)
    if name == "mixed_float16":
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer)
    model.compile(
        optimizer,
        {"word": TranslationLoss("word"), "hits": None},
        metrics={"word": [TokenPerplexity()]},
        jit_compile=False,
    )
    ids = np.full((4, 6), 5, "int32")
    x = {"source": ids, "target_in": ids, "target_out": ids}
    return model, (x, {"word": ids, "hits": ids})


def training_graph(name):
    """Return the graph of a training step: gradients, clipping, update."""
    import tensorflow as tf

    model, data = compiled_model(name)
    data = tf.nest.map_structure(tf.convert_to_tensor, data)
    model._symbolic_build(data_batch=data)
    step = tf.function(model.train_step, autograph=False)
    return step.get_concrete_function(data).graph.as_graph_def()


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_training_step_has_kernels(name):
    missing, count = count_missing_kernels(nodes_of(training_graph(name)))
    if name == "mixed_float16":
        # Keras checks that the sparse gradients of both embeddings are finite.
        assert missing.pop("TensorScatterUpdate") == 2
    assert missing == {} and count > 1000


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", ["global", "local-p", "local-m", "bahdanau"])
def test_no_number_of_a_step_goes_through_the_host(name):
    """Only counters and shapes, which the host needs, are int32."""
    loops = loops_over_time(training_graph(name))
    assert len(loops) > 3
    counted = {"AddV2", "Sub", "Less", "Shape", "StridedSlice", "Pack"}
    # For the divisors of means, and for lists.
    counted |= {"Maximum", "FloorDiv", "ConcatV2", "Identity", "Const"}
    counted |= {"NoOp", "TensorListLength", "TensorListElementShape"}
    pinned = [node for body in loops for node in body if runs_on_the_host(node)]
    assert {node.op for node in pinned} <= counted
    numbers = Counter(node.op for node in pinned)
    assert numbers["AddV2"] + numbers["Sub"] < 5 * len(loops)


@pytest.mark.tensorflow
def test_missing_kernel_is_found():
    import tensorflow as tf

    @tf.function
    def difference(x):
        return tf.raw_ops.ListDiff(x=x, y=x)[0], tf.strings.length(["a"])

    graph = difference.get_concrete_function(tf.TensorSpec([3], tf.float64))
    missing, _ = count_missing_kernels(nodes_of(graph.graph.as_graph_def()))
    assert missing == {"ListDiff": 1}


@pytest.mark.tensorflow
def test_export_has_kernels(tmp_path):
    from tensorflow.core.protobuf import saved_model_pb2

    from tests.serving.tiny_translator import tiny_translator

    tiny_translator().export(str(tmp_path / "1"))
    saved = saved_model_pb2.SavedModel()
    saved.ParseFromString((tmp_path / "1" / "saved_model.pb").read_bytes())
    graph = saved.meta_graphs[0].graph_def
    # The host splits and joins the text, before and after the loops.
    assert set(count_missing_kernels(nodes_of(graph))[0]) <= RAGGED
    missing, count = count_missing_kernels(nodes_in_loops(graph))
    assert missing == {} and count > 3000


def lowered_for_cuda(function, *arguments):
    """Return the program that JAX would compile for a GPU, as text."""
    import jax

    exported = jax.export.export(jax.jit(function), platforms=["cuda"])
    return exported(*arguments).mlir_module()


@on_jax
@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_training_step_is_lowered_for_cuda(name):
    model, data = compiled_model(name)
    model._symbolic_build(data_batch=data)
    model.optimizer.build(model.trainable_variables)
    state = model._get_jax_state(
        trainable_variables=True,
        non_trainable_variables=True,
        optimizer_variables=True,
        metrics_variables=True,
    )
    program = lowered_for_cuda(model.train_step, state, data)
    # No call of a library or of Python.
    assert "custom_call" not in program
    assert program.count("stablehlo.dot_general") > 10


@on_jax
@pytest.mark.parametrize("beam_size", [1, 3])
def test_search_is_lowered_for_cuda(beam_size):
    model = make(attention=GLOBAL)

    def search(ids):
        memory, mask, states = model.encode(ids)
        step = model.decoding_step(memory, mask)
        found = beam_search(step, states, [8, 6], 8, beam_size=beam_size)
        return found.ids, found.scores

    program = lowered_for_cuda(search, np.full((2, 5), 7, "int32"))
    assert "custom_call" not in program
    assert "stablehlo.while" in program


@on_jax
def test_program_that_leaves_the_gpu_is_found():
    import jax

    matrix = np.eye(3, dtype="float32")
    assert "custom_call" in lowered_for_cuda(jax.numpy.linalg.cholesky, matrix)
    with pytest.raises(NotImplementedError, match="cuda"):
        lowered_for_cuda(jax.scipy.linalg.schur, matrix)
