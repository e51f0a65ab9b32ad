"""`luong-keras ask`, and `export/client.py`, which calls it."""

import inspect
import io
import json
import os
import subprocess
import sys

import pytest

from luong_keras.cli.ask import Ask
from luong_keras.cli.main import main
from luong_keras_client import AsyncTranslationClient, TranslationClient
from tests.client.conftest import PATH, ROOT, python
from tests.client.fake_servers import (
    output_row,
    refuse_longer_than,
    shout_with,
)
from tests.client.test_answers import LINES, answer_by_hand
from tests.serving.answered_arrays import TEXTS, translations

SCRIPT = str(ROOT / "export" / "client.py")
ASK = """
from luong_keras_command import main
sys.exit(main(["ask", *sys.argv[1:]]))
"""


@pytest.fixture
def ask(rest, monkeypatch, capsys):
    """Run the command; return its status, output lines and error lines."""

    def run(*arguments, lines=(), terminal=False, url=rest.url):
        if not isinstance(lines, bytes):
            lines = "".join(line + "\n" for line in lines).encode()
        standard_input = io.TextIOWrapper(io.BytesIO(lines))
        standard_input.isatty = lambda: terminal
        monkeypatch.setattr(sys, "stdin", standard_input)
        status = main(["ask", "--url", url, *map(str, arguments)])
        printed = capsys.readouterr()
        return status, printed.out.splitlines(), printed.err.splitlines()

    return run


def test_sentences_are_arguments_or_lines_of_standard_input(ask, model):
    assert ask("one", "two") == (0, ["ONE", "TWO"], [])
    lines = ["\ufeffa", "", "c\u2028d\x0b", "e\ufeff\r", "\r"]
    assert ask(lines=lines)[0] == 0
    (texts,) = model.texts[1:]
    assert sorted(texts) == sorted(["a", "", "c\u2028d\x0b", "e", ""])


def test_standard_input_is_checked_like_a_file(ask, model):
    status, _, (error,) = ask(lines="Käse\n".encode("latin-1"))
    assert status == 2 and "Line 1 of standard input is not UTF-8" in error
    assert not model.texts


def test_defaults_of_the_command_and_the_clients_agree():
    # The defaults that export/client/README.md states.
    stated = {
        "timeout": 30.0,
        "request_timeout": None,
        "attempts": 5,
        "batch_size": 32,
        "concurrency": 4,
        "alignment_step": "produces",
    }
    for kind in (TranslationClient, AsyncTranslationClient):
        parameters = inspect.signature(kind).parameters
        assert {name: parameters[name].default for name in stated} == stated
    assert stated.items() <= {**stated, **vars(Ask())}.items()


@pytest.mark.parametrize("form", [(), ("--n-best=2",), ("--alignments",)])
def test_lines_of_a_terminal_are_sent_one_by_one(ask, model, form):
    model.answer = answer_by_hand
    status, printed, _ = ask(*form, lines=LINES, terminal=True)
    assert status == 0 and len(printed) == len(LINES)
    assert {len(texts) for texts in model.texts} == {1}


def test_options_are_sent_to_the_server(ask, model, rest):
    ask("--beam-size=2", "--length-penalty=1", "--prefix=das", "a")
    row = {
        "text": "a",
        "beam_size": 2,
        "length_penalty": 1.0,
        "prefix": "das",
        "n_best": 1,
        "replace_unknown": -1,
    }
    assert model.requests == [("translate_with_options", [row])]
    ask("--no-replace-unknown", "--required=b", "--top-k=3", "a")
    ((row,),) = [rows for _, rows in model.requests[1:]]
    found = row["replace_unknown"], row["required"], row["top_k"]
    assert found == (0, "b", 3)
    ask("--label=stable", "--model=m", "a")
    assert rest.bodies[-1][0] == "/v1/models/m/labels/stable:predict"
    ask("--version=7", "a")
    assert "/v1/models/translator/versions/7:" in rest.bodies[-1][0]


def test_n_best_lists_are_printed_as_json(ask, model):
    model.answer = answer_by_hand
    status, lines, (warning,) = ask("--n-best=2", lines=LINES)
    found = [json.loads(line) for line in lines]
    assert found == [[one.as_dict() for one in nbest] for nbest in TEXTS]
    assert warning.startswith("luong-keras ask: warning: Expected:")
    assert "(number 3)" in warning


def test_alignments_are_printed_as_json(ask, model):
    def ranks(signature, rows):
        found = answer_by_hand(signature, rows)
        if rows[0].get("rank") == 2:
            found = [one | {"score": -1e30} for one in found]
        return found

    model.answer = ranks
    flags = "--n-best=3", "--alignments", "--alignment-step=reads"
    _, lines, _ = ask(*flags, "--batch-size=2", *LINES)
    expected = [nbest[0].as_dict(links=True) for nbest in translations("reads")]
    for line, one in zip(lines, expected, strict=True):
        # The contract has three ranks; the last one is empty.
        found = json.loads(line)
        assert len(found) == 2 and found[0] == json.loads(json.dumps(one))
        assert "\\u" not in line  # no escapes
    assert {rows[0]["rank"] for _, rows in model.requests} == {0, 1, 2}
    status, _, errors = ask("--n-best=9", "--alignments", *LINES)
    assert status == 2 and "--n-best of at most 3" in "".join(errors)


def test_sampling_options_exclude_alignments(ask):
    options = "--temperature=1", "--required=die"
    status, printed, (error,) = ask("--alignments", *options, "Tür")
    assert status == 2 and not printed
    assert "Received: --temperature, --required." in error


@pytest.mark.parametrize("size", [1, 3])
def test_translations_before_an_error_are_printed(ask, model, size):
    model.answer = refuse_longer_than(5)
    long, unreadable = [*"abcdefgh", "much too long", "i"], b"a\nb\n\xff\n"
    for form, lines, count, message in (
        ("--n-best=1", long, 8, "13 bytes at number 9"),
        # JSON lines come in parts; those before the failed one are printed.
        ("--n-best=2", long, 8 if size == 1 else 6, "13 bytes at number 9"),
        # Also lines before one that cannot be read.
        ("--n-best=1", unreadable, 2, "Line 3 of standard"),
        ("--n-best=2", unreadable, 2, "Line 3 of standard"),
    ):
        flags = form, f"--batch-size={size}", "--concurrency=2"
        status, printed, (line,) = ask(*flags, lines=lines)
        assert (status, len(printed)) == (2, count) and message in line


@pytest.mark.parametrize("flag", ["--n-best=1", "--n-best=2"])
def test_cut_lines_before_an_error_are_reported(ask, model, flag):
    model.answer = shout_with(
        lambda text: {
            "truncated": text == "b",
            "status": "TEXT_TOO_LONG" if len(text) > 5 else "OK",
        }
    )
    lines = ["a", "b", "too long"]
    flags = "--batch-size=1", "--concurrency=2", flag
    _, printed, errors = ask(*flags, lines=lines)
    assert len(printed) == 2
    cut, refused = errors
    assert "1 of the lines (number 2)" in cut and "number 3" in refused


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--url", "http://bob:hunter2@127.0.0.1:1"], "refused"),
        (["--url", "grpc://bob:hunter2@127.0.0.1:1"], "refused"),
        (["--url", "http://bob:hunter2@localhost:x"], "HOST:PORT"),
        (["--url", "bob:hunter2@localhost"], "HOST:PORT"),
        (["--ulr", "http://bob:hunter2@localhost"], "mean --url"),
        (["--hedaer", "Authorization: Bearer hunter2"], "options: --hedaer"),
        (["--version", "stable"], "Write --label for the label"),
        (["--version", "1", "--label", "x"], "both"),
        (["--n-best", "0"], "--n-best must be at least 1"),
        (["--timeout", "0"], "`timeout`"),
        (["--batch-size", "0"], "`batch_size`"),
        *(
            ([f"--{name}", "x.pem"], "https")
            for name in ("ca-certificate", "client-certificate", "client-key")
        ),
    ],
)
def test_errors_are_one_line(ask, arguments, message):
    url = "http://127.0.0.1:1"
    status, printed, errors = ask("--timeout=1", *arguments, "a", url=url)
    assert (status, printed) == (2, [])
    (line,) = errors
    assert line.startswith("luong-keras ask: error: ") and message in line
    assert "hunter2" not in line


def command(*arguments):
    return subprocess.Popen(
        [sys.executable, SCRIPT, *arguments],
        env={**os.environ, "PYTHONPATH": PATH},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )


@pytest.mark.slow
def test_lines_are_answered_before_the_next_one_arrives(rest):
    one = "--batch-size=1", "--concurrency=1"
    with command("--url", rest.url, *one) as running:
        for line in ("first", "second"):
            running.stdin.write(line + "\n")
            running.stdin.flush()
            assert running.stdout.readline() == line.upper() + "\n"
        running.stdin.close()
        assert running.wait(timeout=60) == 0
        assert running.stderr.read() == ""


@pytest.mark.slow
def test_closed_standard_output_is_no_error(rest):
    with command("--url", rest.url, "--batch-size=4") as running:
        running.stdin.write("line\n" * 10_000)
        running.stdin.close()
        assert running.stdout.readline() == "LINE\n"
        running.stdout.close()
        assert running.wait(timeout=60) == 0
        assert running.stderr.read() == ""


@pytest.mark.slow
def test_command_needs_neither_tensorflow_nor_keras(rest, model):
    model.answer = lambda *_: [output_row(translation="ß", score=0.0)]
    blocked = "tensorflow keras grpc sacrebleu matplotlib pydantic yaml"
    done = python(ASK, "--url", rest.url, "a", blocked=blocked.split())
    assert (done.stdout, done.returncode) == ("ß\n", 0), done.stderr


def test_missing_client_error_names_the_install_command():
    done = python(ASK, "a", blocked=["luong_keras_client"])
    assert done.returncode == 2 and "`luong-keras-client`" in done.stderr
    assert "`pip install 'luong-keras[client]'`" in done.stderr


def test_slow_packages_are_not_imported():
    program = (
        "import luong_keras_command\n"
        "from luong_keras.cli import ask\n"
        "slow = {'keras', 'tensorflow', 'matplotlib', 'rich.progress'}\n"
        "assert not slow & set(sys.modules)\n"
    )
    done = python(program)
    assert done.returncode == 0, done.stderr
