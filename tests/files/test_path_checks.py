"""Links in run folders from elsewhere that lead to other files."""

import os
import pathlib

import pytest

from luong_keras.cli.main import main
from luong_keras.cli.train import Call, _only_scoring_is_left
from luong_keras.config import RunConfig
from luong_keras.data.corpus import COUNTS_FILE
from luong_keras.data.corpus_writer import write_corpus
from luong_keras.files.atomic_file import atomic_path, partial_name
from luong_keras.files.folder_lock import lock_folder
from luong_keras.files.path_checks import no_link
from luong_keras.recipe.devices import ONE_DEVICE
from luong_keras.recipe.evaluation import write_results
from luong_keras.recipe.fine_tuning import load_initial_weights
from luong_keras.recipe.preparation import read_prepared_text
from luong_keras.recipe.resumption import record_session
from luong_keras.recipe.vocabularies import requested_sizes
from luong_keras.report.contents import read_run
from luong_keras.serving.export import export_saved_model
from luong_keras.training.epoch_logs import JsonLinesLog
from luong_keras.training.run_folder import WEIGHTS, RunFolder
from luong_keras.training.snapshot_file import read_arrays, write_arrays
from tests.report.made_up_run import GOOD, made_up_run


def write_session(run):
    with record_session(run.sessions, ONE_DEVICE, lambda: 1):
        pass


def lock(run):
    with lock_folder(run.path):
        pass


def write_log(run):
    JsonLinesLog(run.log).on_epoch_end(7, {"loss": 1.0})


def write_page(run):
    with atomic_path(run.report) as temporary:
        temporary.write_text("new")


def only_scoring_is_left(run):
    _only_scoring_is_left(Call(RunConfig(), run.path))


FOR_PAGES = (
    "test.jsonl",
    "test.txt",
    "results.jsonl",
    "sessions.jsonl",
    "log.jsonl",
)
USES = [
    ("config.json", lambda run: run.read_config()),
    ("config.json", lambda run: run.write_config({})),
    ("data.json", lambda run: run.write_data("x")),
    ("dev.jsonl", read_prepared_text),
    ("test.jsonl", read_prepared_text),
    *((name, lambda run: read_run(run.path)) for name in FOR_PAGES),
    ("results.jsonl", lambda run: write_results(run.results, {"a": 1})),
    ("sessions.jsonl", write_session),
    ("log.jsonl", write_log),
    ("log.jsonl", only_scoring_is_left),
    ("corpus/vocabularies.json", requested_sizes),
    ("snapshot.npz", lambda run: read_arrays(run.snapshot)),
    ("snapshot.npz", lambda run: write_arrays(run.snapshot, {}, {})),
    ("initial.weights.h5", lambda run: load_initial_weights(None, run)),
    (".lock", lock),
    ("report.html", write_page),
    *((f"{n}.weights.h5", lambda run, n=n: run.weights(n)) for n in WEIGHTS),
]


@pytest.mark.slow_after_first
@pytest.mark.parametrize("target_exists", [True, False])
@pytest.mark.parametrize("name, use", USES)
def test_links_in_place_of_run_files_are_refused(
    tmp_path, name, use, target_exists
):
    run = made_up_run(tmp_path / "run", GOOD)
    run.dev.write_text('["a", "b"]\n')
    write_corpus([("a", "b")], run.corpus)
    link, secret = run.path / name, tmp_path / "secret"
    if target_exists:
        content = link.read_bytes() if link.exists() else b"{}"
        secret.write_bytes(content)
    link.unlink(missing_ok=True)
    link.symlink_to(secret)
    before = sorted(path.name for path in tmp_path.rglob("*"))
    with pytest.raises(ValueError, match=f"at .*{name}. Received: a link to"):
        use(run)
    assert sorted(path.name for path in tmp_path.rglob("*")) == before
    if target_exists:
        assert secret.read_bytes() == content


@pytest.mark.parametrize(
    "name",
    ["source.txt", "target.ids.bin", partial_name(COUNTS_FILE)],
    ids=["text", "ids", "temporary"],
)
def test_links_in_place_of_corpus_files_are_replaced(tmp_path, name):
    (tmp_path / "corpus").mkdir()
    secret, link = tmp_path / "secret", tmp_path / "corpus" / name
    secret.write_bytes(b"secret")
    link.symlink_to(secret)
    assert len(write_corpus([("a", "b")], tmp_path / "corpus")) == 1
    assert secret.read_bytes() == b"secret" and not link.is_symlink()


@pytest.mark.tensorflow
@pytest.mark.parametrize("kind", ["ids.*.bin", "offsets.*.npy"])
def test_links_in_place_of_token_ids_are_refused(tmp_path, kind):
    from luong_keras.data.token_ids import token_ids
    from luong_keras.text.word_tokenizer import WordTokenizer

    tokenizer = WordTokenizer.from_words(["a"])
    corpus = write_corpus([("a a", "b")], tmp_path / "corpus")
    assert token_ids(corpus, "source", tokenizer).lengths.tolist() == [2]
    (path,) = corpus.folder.glob(f"source.{kind}")
    path.unlink()
    secret = tmp_path / "secret"
    secret.write_bytes(b"secret")
    path.symlink_to(secret)
    with pytest.raises(ValueError, match="Received: a link to"):
        token_ids(corpus, "source", tokenizer)
    assert secret.read_bytes() == b"secret"


def test_files_of_other_users_are_not_changed_in_place(tmp_path, monkeypatch):
    run = made_up_run(tmp_path / "run")
    before = run.sessions.read_text()
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    write_log(run)  # Replaces the file.
    with monkeypatch.context() as patches:
        change_owner(patches, run.path, user + 2)
        message = f"Received: a file of user {user}"
        with pytest.raises(ValueError, match=message):
            write_session(run)
    assert run.sessions.read_text() == before
    # A file of the folder's owner may be changed, as on a network mount.
    write_session(run)


def change_owner(monkeypatch, folder, user):
    """Pretend that a folder belongs to another user."""
    stat = pathlib.Path.stat

    def changed(path, **options):
        found = stat(path, **options)
        if path == folder:
            return os.stat_result((*found[:4], user, *found[5:]))
        return found

    monkeypatch.setattr(pathlib.Path, "stat", changed)


def test_folders_of_a_run_can_be_links(tmp_path):
    run = RunFolder(tmp_path / "run")
    (tmp_path / "elsewhere").mkdir()
    run.path.mkdir()
    run.checkpoints.symlink_to(tmp_path / "elsewhere")
    with atomic_path(run.checkpoints / "epoch-007.weights.h5") as temporary:
        temporary.write_bytes(b"weights")
    assert run.weights("epoch-7").exists()
    link = tmp_path / "link"
    link.symlink_to(run.path)
    with lock_folder(link):
        write_results(RunFolder(link).results, {"a": 1})
    assert run.results.exists()


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    "arguments",
    [
        ["export", "--run-dir", "run", "--output", "gs://bucket/model/1"],
        ["export", "--run-dir", "run", "s3://b/run", "--output", "1"],
        ["translate", "--run-dir", "gs://bucket/run"],
        ["train", "--run-dir", "hdfs://host/run"],
        ["report", "gs://bucket/run"],
        ["report", "run", "--output", "gs://bucket/report.html"],
        ["report", "run", "--output", "~/report.html"],
        pytest.param(
            ["report", "run", "--output", "~root/report.html"],
            marks=pytest.mark.skipif(os.name == "nt", reason="needs root"),
        ),
    ],
)
def test_commands_refuse_urls_and_tildes_as_paths(
    tmp_path, monkeypatch, capsys, arguments
):
    monkeypatch.chdir(tmp_path)
    made_up_run("run", GOOD)
    address = next(each for each in arguments if "/" in each)
    assert main(arguments) == 2
    assert f"Received: {address}, which begins" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_exports_and_runs_refuse_urls_and_other_bytes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="begins with gs:"):
        export_saved_model(None, "gs://bucket/model/1")
    with pytest.raises(ValueError, match="begins with s3:"):
        RunFolder("s3://bucket/run")
    message = r"path in UTF-8. Received: 'a\\udce9'"
    with pytest.raises(ValueError, match=message):
        RunFolder("a\udce9")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root"
)
def test_root_can_change_files_of_the_owner_of_a_mounted_folder(tmp_path):
    file = tmp_path / "results.jsonl"
    file.touch()
    os.chown(file, 12_345, -1)
    with pytest.raises(ValueError, match="a file of user 12345"):
        no_link(file, in_place=True)
    os.chown(tmp_path, 12_345, -1)
    assert no_link(file, in_place=True) == file
