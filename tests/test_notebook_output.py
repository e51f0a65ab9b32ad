"""Output of cells in a notebook, run by a separate kernel."""

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")

CELLS = """
import luong_keras
# %%
import time
from luong_keras.progress import progress_bar
with progress_bar("reading", 4) as advance:
    for _ in range(4):
        advance(1)
        time.sleep(0.15)
    print("meanwhile")
# %%
import keras, numpy as np
from luong_keras.training.training_progress import TrainingProgress
model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
model.compile("sgd", "mse", jit_compile=False)
with TrainingProgress() as progress:
    model.fit(np.zeros((9, 1)), np.zeros((9, 1)), 3, 2, callbacks=[progress],
              verbose=0);
# %%
from tests.serving.tiny_translator import tiny_translator
translator = tiny_translator(beam_size=2)
translator
# %%
translator.nbest(["the cat sees a dog .", "a house ."])
# %%
from luong_keras.evaluation import plot_alignment
best = translator.nbest(["a house ."])[0][0]
axes = plot_alignment(best.source_tokens, best.tokens, best.alignments)
"""


@pytest.fixture(scope="module")
def outputs():
    """Run the cells and return the outputs of each."""
    cells = map(nbformat.v4.new_code_cell, CELLS.strip().split("\n# %%\n"))
    notebook = nbformat.v4.new_notebook(cells=list(cells))
    nbclient.NotebookClient(
        notebook, timeout=300, kernel_name="python3"
    ).execute()
    return [cell.outputs for cell in notebook.cells]


def _printed(outputs):
    return "".join(o.text for o in outputs if o.output_type == "stream")


@pytest.mark.slow
@pytest.mark.tensorflow
def test_notebook_shows_only_results(outputs):
    start, bar, training, translator, nbest, plot = outputs
    # Importing TensorFlow prints nothing.
    assert start == []
    # The line of a bar is empty at the end.
    assert [o.data for o in bar if "data" in o] == [{"text/plain": ""}]
    assert _printed(bar) == "meanwhile\n"
    assert [o.data for o in training if "data" in o] == [{"text/plain": ""}]
    assert _printed(training).count("epoch ") == 2
    assert "<td>attention</td>" in translator[-1].data["text/html"]
    table = nbest[-1].data["text/html"]
    assert table.count("<tr>") == 5 and "<td>sentence</td>" in table
    assert "image/png" in plot[-1].data
