"""Exports: contents, checks, refusals and the command."""

import ast
import errno
import os
import runpy
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from luong_keras.config import RunConfig
from luong_keras.files.folder_lock import lock_folder
from luong_keras.inference import word_lists
from luong_keras.inference.translation import ABSENT_SCORE
from luong_keras.recipe.stages import run_recipe
from luong_keras.serving.export import (
    export_saved_model,
    exported_translations,
    newest_version,
    next_version,
)
from luong_keras.serving.saved_model_checks import (
    check_saved_model,
    compare_answers,
)
from luong_keras.serving.saved_model_session import (
    SavedModelError,
    run_in_server_runtime,
)
from luong_keras.serving.signatures import INPUTS, probes, signatures, specs
from luong_keras.serving.warmup import read_warmup, write_warmup
from luong_keras.special_tokens import SPECIAL_TOKENS
from tests.serving.linux import needs_linux
from tests.serving.tiny_translator import (
    SOURCE_WORDS,
    tiny_translator,
    write_run,
)

TEXTS = [b"the cat sees a zebra .", b"", b"caf\xe9 house \xff"]
TEXTS += [b"the the " * 20, "Straße .".encode()]
EXPORTER = Path(__file__).parents[2] / "export" / "export_saved_model.py"
DICTIONARY = ["the", "cat", "sees", "a", "zebra", "house"]
FRESH_PROCESS = """
import ast, sys
import tensorflow as tf
import tensorflow_text

model = tf.saved_model.load(sys.argv[1])
texts = tf.constant(ast.literal_eval(sys.argv[2]))
found = model.signatures["translate"](text=texts)
assert "luong_keras" not in sys.modules
print(found["translations"].numpy().ravel().tolist())
"""


@pytest.fixture(scope="module")
def translator(tmp_path_factory):
    dictionary = tmp_path_factory.mktemp("dictionary") / "en-de"
    lines = [f"{word} {word.upper()}! 0.9\n" for word in DICTIONARY]
    dictionary.write_text("".join(lines))
    return tiny_translator(
        3.0, dictionary=str(dictionary), length_penalty=1.0, max_beam_size=4
    )


@pytest.fixture(scope="module")
def exported(translator, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "tiny" / "1"
    return export_saved_model(translator, folder)


@contextmanager
def changed_copy(exported, folder):
    """Copy an export; yield its graph, and write what a test changes there."""
    shutil.copytree(exported, folder, dirs_exist_ok=True)
    path = folder / "saved_model.pb"
    saved = saved_model_pb2.SavedModel()
    saved.ParseFromString(path.read_bytes())
    yield saved.meta_graphs[0]
    path.write_bytes(saved.SerializeToString())


def answers_of_runtime(folder, *requests):
    """Return the answers of the server's runtime to (signature, inputs)."""
    calls = [
        (name, {key: tensor.numpy() for key, tensor in inputs.items()})
        for name, inputs in requests
    ]
    return run_in_server_runtime(folder, calls)


@needs_linux
@pytest.mark.slow
def test_server_runtime_gives_the_same_outputs(exported, translator):
    functions = signatures(translator, traced=False)
    requests = list(probes(TEXTS).items())
    empty_requests = list(probes([]).items())
    answers = answers_of_runtime(exported, *requests, *empty_requests)
    for (name, inputs), answer, empty in zip(
        requests, answers[: len(INPUTS)], answers[len(INPUTS) :], strict=True
    ):
        expected = functions[name](*inputs.values())
        assert set(answer) == set(empty) == set(expected)
        for key, tensor in expected.items():
            assert len(empty[key]) == 0
            if tensor.dtype == tf.string:
                assert (answer[key] == tensor.numpy()).all(), key
            else:
                np.testing.assert_allclose(
                    answer[key], tensor, rtol=1e-5, atol=1e-5, err_msg=key
                )


@needs_linux
@pytest.mark.slow
def test_fresh_process_gives_the_same_translations(exported):
    command = [sys.executable, "-I", "-c", FRESH_PROCESS]
    command += str(exported), repr(TEXTS)
    process = subprocess.run(command, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr[-3000:]
    texts = ast.literal_eval(process.stdout)
    request = "translate", probes(TEXTS)["translate"]
    (found,) = answers_of_runtime(exported, request)
    assert texts == found["translations"].ravel().tolist()
    # The export contains the dictionary: only its words have the mark.
    assert any(b"!" in text for text in texts)


@pytest.mark.slow
def test_export_contains_its_vocabularies(exported):
    files = (exported / "assets").iterdir()
    texts = [file.read_text(encoding="utf-8").splitlines() for file in files]
    assert len(texts) == 3
    assert [*SPECIAL_TOKENS, *SOURCE_WORDS] in texts
    assert [f"{word}\t{word.upper()}!" for word in DICTIONARY] in texts


@pytest.mark.slow
def test_every_signature_has_a_warm_up_request(exported):
    requests = list(read_warmup(exported))
    assert [name for name, _ in requests] == list(INPUTS)
    for name, inputs in requests:
        assert {key: array.dtype.kind for key, array in inputs.items()} == {
            key: {"string": "O", "int32": "i", "float32": "f"}[dtype.name]
            for key, dtype in INPUTS[name].items()
        }


@pytest.mark.slow_after_first
@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_existing_versions_are_not_overwritten(
    translator, tmp_path, when, one_signature
):
    path = tmp_path / "1" / "saved_model.pb"

    def write(line=""):
        path.parent.mkdir(exist_ok=True)
        path.write_text("theirs")

    if when == "before":
        write()
    with pytest.raises(FileExistsError, match="another version number"):
        export_saved_model(translator, path.parent, say=write)
    assert list(tmp_path.rglob("*")) == [path.parent, path]


def test_failed_export_leaves_no_files(
    translator, tmp_path, monkeypatch, one_signature
):
    def fail(saved, path, **options):
        Path(path).mkdir()
        (Path(path) / "saved_model.pb").write_bytes(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(tf.saved_model, "save", fail)
    # One folder is of a killed process, the other one is being written.
    names = ".1-a", ".mine-12345678", ".1-b"
    *killed, writing = (tmp_path / "models" / name for name in names)
    for folder in killed:
        with lock_folder(folder):
            (folder / "model").mkdir()
    with lock_folder(writing):
        for name in ("2", "mine"):
            with pytest.raises(OSError, match="disk full"):
                export_saved_model(translator, tmp_path / "models" / name)
        assert list((tmp_path / "models").iterdir()) == [writing]


def test_export_is_synced_before_it_is_renamed(
    translator, tmp_path, monkeypatch, one_signature
):
    def write(saved, path, **options):
        (Path(path) / "variables").mkdir(parents=True)
        (Path(path) / "variables" / "data").write_bytes(b"weights")

    synced = set()

    def fsync(descriptor):
        synced.add(os.fstat(descriptor).st_ino)

    def replace(source, target):
        inside = [Path(source), *Path(source).rglob("*")]
        assert {path.stat().st_ino for path in inside} == synced
        assert Path(source) / "variables" / "data" in inside
        synced.clear()
        os.rename(source, target)

    monkeypatch.setattr(tf.saved_model, "save", write)
    check = "luong_keras.serving.export.check_saved_model"
    monkeypatch.setattr(check, lambda *_: None)
    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace)
    folder = export_saved_model(translator, tmp_path / "models" / "2")
    assert synced == {folder.parent.stat().st_ino}


def compiled(encoded):
    double = tf.function(lambda x: 2 * x, jit_compile=True)
    return {**encoded, "memory": double(encoded["memory"])}


def without_batch(encoded):
    return {**encoded, "lengths": tf.reduce_max(encoded["lengths"])}


@pytest.fixture
def one_signature(monkeypatch):
    """Export only `encode`, as tracing takes seconds per signature."""
    for module in ("signatures", "saved_model_checks"):
        name = f"luong_keras.serving.{module}.INPUTS"
        monkeypatch.setattr(name, {"encode": INPUTS["encode"]})

    def encode_alone(graph, *_, **options):
        return {"encode": lambda text: graph.encode_batch(text)}

    name = "luong_keras.serving.export.signatures"
    monkeypatch.setattr(name, encode_alone)


@needs_linux
def test_servable_model_passes_every_check(translator, one_signature, tmp_path):
    messages = []
    export_saved_model(translator, tmp_path / "1", say=messages.append)
    assert [path.name for path in tmp_path.iterdir()] == ["1"]
    assert [line.partition(":")[0] for line in messages] == ["checked"] * 3


@pytest.mark.parametrize(
    "broken, cause",
    [
        (compiled, "asks for compilation by XLA"),
        (without_batch, r"first axis.*Received: \[\] for 'lengths'"),
    ],
)
def test_unservable_models_are_refused(
    translator, tmp_path, monkeypatch, one_signature, broken, cause
):
    encode = translator.encode_batch
    monkeypatch.setattr(translator, "encode_batch", lambda x: broken(encode(x)))
    with pytest.raises(SavedModelError, match=cause):
        export_saved_model(translator, tmp_path / "models" / "1")
    assert list((tmp_path / "models").iterdir()) == []


@pytest.mark.parametrize(
    "operation, cause",
    [
        ("PyFunc", "calls Python"),
        ("EagerPyFunc", "calls Python"),
        ("XlaCallModule", "is a program of XLA"),
        ("CudnnRNNV3", "has no kernel for a CPU"),
        ("Addons>Unlinked", "has no kernel for a CPU"),
    ],
)
def test_operations_missing_in_a_server_are_refused(
    exported_models, tmp_path, operation, cause
):
    with changed_copy(exported_models / "1", tmp_path) as graph:
        functions = graph.graph_def.library.function
        nodes = (node for function in functions for node in function.node_def)
        next(node for node in nodes if node.op == "Tanh").op = operation
    with pytest.raises(SavedModelError, match=f"'{operation}' {cause}"):
        check_saved_model(tmp_path)


@pytest.mark.slow
def test_plain_saved_model_is_refused(translator, tmp_path):
    # It has copies of Keras' variables, which are not restored.
    model = translator.translation_model.model
    translator.network = list(model._flatten_layers())
    functions = {
        name: tf.function(call, input_signature=specs(name), autograph=False)
        for name, call in signatures(translator, traced=False).items()
    }
    folder = tmp_path / "1"
    tf.saved_model.save(translator, str(folder), signatures=functions)
    del translator.network
    write_warmup(folder, probes(TEXTS[:1]))
    # Threads decide which variable is read first.
    lost = "Resource localhost/.*Var.* does not exist.* write it again"
    with pytest.raises(SavedModelError, match=lost):
        check_saved_model(folder)


@pytest.mark.slow
@pytest.mark.parametrize(
    "pattern, kept, cause",
    [
        ("assets/*.tsv", None, r"dictionary\.tsv.* write it again"),
        ("*/*.data-*", -100, "less bytes than requested.* write it again"),
        ("assets.extra/*", None, "warm-up requests .* are missing"),
        ("assets.extra/*", 0, "Expected: warm-up requests .* Received: none"),
        ("saved_model.pb", -1000, "cannot be read"),
    ],
)
def test_damaged_exports_are_refused(exported, tmp_path, pattern, kept, cause):
    shutil.copytree(exported, tmp_path, dirs_exist_ok=True)
    (path,) = tmp_path.glob(pattern)
    content = path.read_bytes()[:kept]
    path.unlink()
    if kept is not None:
        path.write_bytes(content)
    with pytest.raises(SavedModelError, match=cause):
        check_saved_model(tmp_path)


@pytest.mark.slow
def test_missing_signatures_are_refused(exported, tmp_path):
    with changed_copy(exported, tmp_path) as graph:
        del graph.signature_def["align"]
    with pytest.raises(SavedModelError, match=r"without \['align'\]"):
        check_saved_model(tmp_path)


ANSWER = {
    "translations": np.array([[b"a b", b"c"], [b"d", b"e"]], object),
    "scores": np.array([[-1.0, -2.0], [-1.0, -1.00001]], "float32"),
    "lengths": np.array([[2, 1], [1, 1]], "int32"),
    "alignments": np.ones((2, 2, 2, 1), "float32"),
}


def with_row(row, **changes):
    """Return `ANSWER` with other values in one row."""
    changed = {key: array.copy() for key, array in ANSWER.items()}
    for key, values in changes.items():
        changed[key][row] = values
    return changed


def test_equal_answers_and_swapped_ties_pass():
    compare_answers("translate", with_row(0, scores=[-1.000005, -2]), ANSWER)
    # Two translations of equal scores may be swapped.
    other = with_row(1, translations=[b"e", b"d"], alignments=0.5)
    compare_answers("translate", other, ANSWER)


@pytest.mark.parametrize(
    "changed",
    [
        with_row(0, translations=[b"c", b"a b"]),
        with_row(0, scores=[-1.001, -2]),
        with_row(0, alignments=0.5),
        with_row(1, scores=[-1.1, -1.2]),
        {**ANSWER, "lengths": np.ones((2, 3), "int32")},
    ],
)
def test_different_answers_are_refused(changed):
    with pytest.raises(SavedModelError, match="another process differs"):
        compare_answers("translate", changed, ANSWER)


def test_only_ties_may_change_a_single_translation(monkeypatch, tmp_path):
    checks = "luong_keras.serving.saved_model_checks."
    graph = saved_model_pb2.SavedModel().meta_graphs.add()
    requests = [("encode", {})]
    monkeypatch.setattr(checks + "INPUTS", {})
    monkeypatch.setattr(checks + "read_meta_graph", lambda _: graph)
    monkeypatch.setattr(checks + "warmup.read_warmup", lambda _: requests)
    text, score = ANSWER["translations"][:, 0], ANSWER["scores"][:, 0]
    best = {"translation": text, "score": score}
    expected = [(("translate", {}), ANSWER), (("align", {}), best)]

    def check(text, all_ranks=ANSWER):
        found = {"translate": all_ranks, "align": {**best, "translation": text}}
        run = "run_in_server_runtime"
        monkeypatch.setattr(
            checks + run, lambda _, calls: [found.get(x) for x, _ in calls]
        )
        check_saved_model(tmp_path, expected)

    check(np.array([text[0], b"other"]))
    with pytest.raises(SavedModelError, match="translation = b'a b'"):
        check(np.array([b"other", text[1]]))
    with pytest.raises(SavedModelError, match="scores = "):
        check(text, with_row(1, scores=[-1.1, -1.2]))


def test_absent_ranks_are_not_ties():
    scores = np.array([[-1.0, ABSENT_SCORE, ABSENT_SCORE]], "float32")
    one = {"translations": np.array([[b"a", b"", b""]]), "scores": scores}
    other = {**one, "translations": np.array([[b"b", b"", b""]])}
    with pytest.raises(SavedModelError, match="another process differs"):
        compare_answers("translate", one, other)


@pytest.mark.slow
@needs_linux
def test_exported_answers_are_compared_with_the_model(exported):
    inputs = {"text": np.array([b"the cat sees a dog ."], object)}
    call = "serving_default", inputs
    (found,) = run_in_server_runtime(exported, [call])
    check_saved_model(exported, [(call, found)])
    other = {**found, "translation": np.array([b"other"], object)}
    with pytest.raises(SavedModelError, match="translation = b"):
        check_saved_model(exported, [(call, other)])


def run_exporter(monkeypatch, *arguments):
    monkeypatch.setenv("PYTHONSAFEPATH", "1")  # The command sets it for good.
    monkeypatch.setattr(sys, "argv", [str(EXPORTER), *map(str, arguments)])
    runpy.run_path(str(EXPORTER), run_name="__main__")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The files of a run that an export reads."""
    return write_run(tmp_path_factory.mktemp("runs"), tiny_translator())


@needs_linux
@pytest.mark.slow
def test_command_exports_a_run(trained, tmp_path, monkeypatch, capsys):
    output = tmp_path / "models" / "2"
    options = ("--output", output, "--max-beam-size", 5)
    run_exporter(monkeypatch, "--run-dir", trained, trained, *options)
    printed = capsys.readouterr().out
    assert printed.count("checked: ") == 3
    assert printed.splitlines()[-1] == f"exported to {output}"
    inputs = probes([b"a cat"])["translate_with_options"]
    inputs["beam_size"] = tf.constant([5])
    (found,) = answers_of_runtime(output, ("translate_with_options", inputs))
    assert found["translations"].shape == (1, 5)


@pytest.mark.parametrize(
    "arguments, cause",
    [
        (["--output", "models/first"], "a version number as its last part"),
        (["--output", "1", "--max-beam-size", 2], "at least beam_size"),
        (["--output", "1", "--weights", "last"], "last.weights.h5"),
        (["--output", "1", "--run-dir", "nowhere"], "nowhere"),
    ],
)
def test_command_reports_errors(
    trained, tmp_path, monkeypatch, capfd, arguments, cause
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match="2"):
        run_exporter(monkeypatch, "--run-dir", trained, *arguments)
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith("luong-keras export: error: ") and cause in line
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_newest_export_translates_from_python(exported, translator, tmp_path):
    sentences = ["the cat sees a dog .", "", "a house"]
    newest = newest_version(exported.parent)
    assert newest == exported
    found = exported_translations(newest, sentences, batch_size=2)
    assert found == translator.translate(sentences)
    # More lines than a batch of the export may have.
    found = exported_translations(newest, sentences * 12, batch_size=36)
    assert found == translator.translate(sentences) * 12
    assert exported_translations(newest, ["a" * 10_000, ""]) == [None, ""]
    for name in ("9", "10", ".11-writing", "notes"):
        (tmp_path / name).mkdir()
    assert newest_version(tmp_path) == tmp_path / "10"
    with pytest.raises(FileNotFoundError, match="its name a number"):
        newest_version(tmp_path / "nothing")


def test_version_numbers_increase(tmp_path, monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 1000.5)
    assert next_version(tmp_path) == 1000
    (tmp_path / "999").mkdir()
    assert next_version(tmp_path) == 1000
    (tmp_path / "1000").mkdir()
    (tmp_path / "2000").mkdir()
    assert next_version(tmp_path) == 2001


def test_paths_with_wildcards_are_refused(tmp_path):
    refused = pytest.raises(ValueError, match="takes for a pattern. Received")
    for name in ("a*", "[b]", "c?"):
        with refused:
            export_saved_model(None, tmp_path / name / "1")
        with refused:
            run_recipe(RunConfig(), tmp_path / name)


@pytest.mark.slow
def test_shortlist_is_exported(tmp_path, monkeypatch):
    monkeypatch.setattr(word_lists, "MIN_FREQUENT_WORDS", 5)
    lexicon = tmp_path / "lexicon"
    lexicon.write_text("the die 0.6\ncat Katze 1\na einen 1\n. . 1\n")
    translator = tiny_translator(shortlist=str(lexicon), max_source_length=6)
    messages = []
    folder = export_saved_model(translator, tmp_path / "1", messages.append)
    # The export does not need the file.
    lexicon.unlink()
    assert sum(line.startswith("checked") for line in messages) == 3
    text = tf.constant(["the cat", "a house ."])
    loaded = tf.saved_model.load(str(folder))
    found = loaded.signatures["translate"](text)
    texts = [row[0].decode() for row in found["translations"].numpy()]
    assert texts == translator.translate(["the cat", "a house ."])
    words = {word for line in texts for word in line.split()}
    assert words <= {"<unk>", "die", "Katze", "einen", ".", "house"}


def test_folders_that_cannot_be_written_say_why(tmp_path, monkeypatch):
    def refuse(*_, dir, **__):
        raise PermissionError(errno.EACCES, "denied", f"{dir}/.1-x")

    monkeypatch.setattr("tempfile.TemporaryDirectory", refuse)
    with pytest.raises(PermissionError, match="1 was not written: there is no"):
        export_saved_model(None, tmp_path / "1")
