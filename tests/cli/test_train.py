import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from luong_keras.cli.main import main
from luong_keras.cli.parsing import seconds, spread_assignments
from luong_keras.cli.train import parse
from luong_keras.config.values import SHORT_NAMES, config_to_dict, override
from luong_keras.presets import PRESETS
from luong_keras.recipe.devices import Devices, LostProcessError
from luong_keras.training.run_folder import RunFolder

SIZES = "model.source_vocabulary_size=700 model.target_vocabulary_size=700"
CHANGED = ["training.epochs=7", "model.units=8"]
FILES = {
    **dict.fromkeys(("pairs.tsv", "dev.tsv"), "a\tb\nc\td\n"),
    **dict.fromkeys(("text.en", "text.de"), "a\tb\nc\td\n"),
    "some.yaml": "training: {epochs: 7, batch_size: 7}\nmodel: {units: 8}\n",
    "columns.yaml": "data: {columns: 'a,2'}",
    "text.yaml": "data: {train: pairs.tsv, dev: dev.tsv}",
    "dev.yaml": "data: {dev: x.tsv}",
    "wide.yaml": "model: {attention: {kind: global, half_width: 5}}",
    "none.yaml": "decoding: {stack_size: None}",
    "american.yaml": "data: {source_language: en-US}",
    "french.yaml": "data: {train: [a.fr, a.it], source_language: fr, "
    "target_language: it}",
    "part.json": '{"training": {"optimizer": "adam"}}',
    "tuned.yaml": "training: {init_from: parent, batch_size: 7}",
}


def write_config(path, config, *changes):
    """Write changed settings, as of another run; return them."""
    config = override(config, changes)
    Path(path).parent.mkdir(exist_ok=True)
    Path(path).write_text(json.dumps(config_to_dict(config)))
    return config


@pytest.fixture(autouse=True)
def working_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        Path(name).write_text(text)
    write_config("whole.json", PRESETS["authors"], *CHANGED)


@pytest.fixture
def calls(monkeypatch):
    """Record the arguments of each call of the recipe, which does not run."""
    found = []
    monkeypatch.setattr(
        "luong_keras.recipe.stages.run_recipe",
        lambda *given: found.append(given) or True,
    )
    return found


@pytest.mark.parametrize(
    "row",
    [
        # Arguments -> the preset and what they change of it.
        " -> demo",
        "--preset paper -> paper",
        "--epochs 3 --units 32 -> demo epochs=3 units=32",
        "--layers 2 -> demo model.encoder_layers=2 layers=2",
        # Flags override --set, which overrides files, which override presets.
        "--config some.yaml --set training.epochs=9 -> "
        "demo epochs=9 batch_size=7 units=8",
        "--set epochs=9 --epochs 4 --config some.yaml -> "
        "demo epochs=4 batch_size=7 units=8",
        "--config some.yaml --training.epochs 4 -> "
        "demo epochs=4 batch_size=7 units=8",
        # The flag overrides --set even with the value of the preset, 4.
        "--training.epochs 4 --set epochs=9 -> demo",
        "--preset=small-fast --set epochs=9 --epochs 8 -> small-fast",
        # Values of the preset, with a setting that would change them.
        "--preset authors --decoding.beam-size 3 --decoding.stack-size 100 "
        "--decoding.replace-unknown false -> "
        "authors beam_size=3 decoding.stack_size=100 "
        "decoding.replace_unknown=false",
        # Lists and null, in every spelling.
        *(
            f'{flag} --preset small-fast -> small-fast data.columns=["a","2"]'
            for flag in (
                "--columns a 2",
                "--data.columns a,2",
                "--columns=a,2",
                "--set columns=[a,2]",
                "--set data.columns=(a,2)",
                "--config columns.yaml",
            )
        ),
        *(
            f"{flag} --preset authors -> authors decoding.stack_size=null"
            for flag in (
                "--decoding.stack-size null",
                "--decoding.stack-size=None",
                "--set decoding.stack_size=None",
                "--config none.yaml",
            )
        ),
        "--data.lowercase True -> demo data.lowercase=true",
        # Several assignments after --set, and several --set.
        "--set epochs=3 units=32 --preset small --set seed=2 "
        "model.attention.kind=none -> "
        "small epochs=3 units=32 seed=2 model.attention.kind=none",
        "--model.attention.kind none --model.bidirectional false "
        "--model.reverse-source --seed 1 -> "
        "demo model.attention.kind=none model.bidirectional=false "
        "model.reverse_source=true seed=1",
        "--training.clip-norm None -> demo training.clip_norm=null",
        "--preset authors --beam-size 1 -> authors beam_size=1",
        "--dataset wmt15 -> demo data.dataset=wmt15_translate",
    ],
)
def test_command_line_sets_the_configuration(row):
    argv, expected = row.split(" -> ")
    preset, *assignments = expected.split()
    config, run_dir, *_ = parse(argv.split())
    assert config == override(PRESETS[preset], assignments)
    assert run_dir == Path("runs", preset)


def test_configuration_of_another_run_replaces_the_preset():
    config, *_ = parse(["--config", "whole.json"])
    assert config == override(PRESETS["authors"], CHANGED)
    # A beam of 1 still resets the size of the stack.
    config, *_ = parse(["--config", "whole.json", "--set", "beam_size=1"])
    assert config.decoding.stack_size is None


def test_text_replaces_that_of_a_run_on_a_corpus(capsys):
    own = "data.source_language=en", "training.metric=bleu:13a"
    write_config("corpus.json", PRESETS["demo"], *own, "units=8")
    config, *_ = parse(["pairs.tsv", "--config", "corpus.json"])
    assert config.data.source_language is None
    assert (config.training.metric, config.model.units) == ("auto", 8)
    assert "--config is of another run" in capsys.readouterr().out


@pytest.mark.parametrize(
    "row",
    [
        "--set model.attention.kind=global model.attention.half_width=5 -> "
        "half_width has an effect only with model.attention.kind=local.",
        "--config wide.yaml -> half_width has an effect only with model.att",
        "--set model.attention.kind=none model.attention.score_mode=dot -> "
        "only with model.attention.kind=global or local.",
        "pairs.tsv --model.attention.concat-form joint -> "
        "concat_form='joint' with model.attention.score_mode=general.",
        "--set training.halving=plateau training.first_halved_epoch=3 -> "
        "only with training.halving=start or after_epoch or by_iteration.",
        "--set training.halving=plateau training.halvings_per_epoch=2 -> "
        "only with training.halving=start or after_epoch or by_iteration.",
        "--data.filters.length-unit characters -> "
        "data.filters.length_unit has an effect only with "
        "data.filters.length_ratio=…. Received: "
        "data.filters.length_unit='characters' with "
        "data.filters.length_ratio=None.",
        # The file is taken for the second column.
        "--columns en pairs.tsv -> "
        "columns has an effect only with data.dataset=files. Received: "
        r"data.columns=\('en', 'pairs.tsv'\)",
        "--set training.optimizer=sgd -> "
        "learning_rate with training.optimizer=sgd, about 1. Received: "
        r"none, and 0.\d+ is that of adam.",
        "--set training.clip_norm=null --set "
        "training.clip_counts_embeddings=false -> "
        "clip_counts_embeddings has an effect only with training.clip_norm",
        "--set decoding.temperature=0.5 -> "
        "temperature has an effect only with decoding.search=sampling.",
        *(
            f"--set model.attention.kind=none model.attention.{setting} -> "
            f"{setting.split('=')[0]} has an effect only with model"
            for setting in (
                *("use_scale=true", "alignment=monotonic", "gaussian=none"),
                *(
                    "clamp_position=false",
                    "max_length=9",
                    "mask_location=false",
                ),
            )
        ),
    ],
)
def test_settings_without_effect_are_refused_in_new_runs(row):
    argv, message = row.split(" -> ")
    with pytest.raises(ValueError, match=message):
        parse(argv.split())
    settings = [part for part in argv.split() if "=" in part]
    write_config("run/config.json", PRESETS["tiny"], *settings)
    parse(["--run-dir", "run", *argv.split()])
    parse(["--config", "run/config.json"])


def test_a_new_optimizer_needs_its_learning_rate():
    write_config("whole.json", PRESETS["paper"])
    for argv in (
        "--preset paper --config part.json",
        "--config whole.json --optimizer adam",
    ):
        with pytest.raises(ValueError, match="and 1 is that of sgd"):
            parse(argv.split())
        argv += " --learning-rate 0.001"
        assert parse(argv.split()).config.training.optimizer == "adam"
    parse(["--preset", "paper", "--config", "whole.json", "--optimizer", "sgd"])


@pytest.mark.slow_after_first
@pytest.mark.parametrize(
    "row",
    [
        "pairs.tsv -> train=pairs.tsv",
        "text.en text.de --dev dev.tsv -> train=[text.en,text.de] dev=dev.tsv",
        "pairs.tsv --dev text.de text.en --test text.en --test text.de -> "
        "train=pairs.tsv dev=[text.de,text.en] test=[text.en,text.de]",
        "pairs.tsv dev.tsv --set data.weights=[3,1] -> "
        "train=[pairs.tsv,dev.tsv] weights=[3,1]",
        'pairs.tsv --set data.columns=["b","1"] -> '
        'train=pairs.tsv columns=[b,"1"]',
        '--columns b,1 pairs.tsv -> train=pairs.tsv columns=[b,"1"]',
        "pairs.tsv --set data.dev=x.tsv data.train=y.tsv -> "
        "train=pairs.tsv dev=x.tsv",
        "--set data.train=pairs.tsv -> train=pairs.tsv",
        "--config text.yaml -> train=pairs.tsv dev=dev.tsv",
        "--config dev.yaml pairs.tsv -> train=pairs.tsv dev=x.tsv",
        "--config dev.yaml pairs.tsv --dev dev.tsv -> "
        "train=pairs.tsv dev=dev.tsv",
        # Pairs are held out of the new text; those of the file are of another.
        "--config text.yaml pairs.tsv -> train=pairs.tsv",
    ],
)
def test_training_text_is_named_by_its_files(row, capsys):
    argv, data = row.split(" -> ")
    config, run_dir, *_ = parse(argv.split())
    assert run_dir == Path("runs/tiny")
    changes = SIZES.replace("700", "50").split()
    changes += [f"data.{assignment}" for assignment in data.split()]
    tiny = override(PRESETS["tiny"], changes)
    assert config.model == tiny.model
    for name in ("dataset", "train", "dev", "test", "weights", "columns"):
        assert getattr(config.data, name) == getattr(tiny.data, name)
    assert "No --preset" not in capsys.readouterr().out


@pytest.mark.parametrize("text", ["pairs.tsv", "--set data.train=pairs.tsv"])
def test_what_another_run_chose_for_its_text_is_not_used(text, capsys):
    chosen = ["data.source_language=en", "data.columns=en,de", "data.dev=x.tsv"]
    chosen += ["training.metric=bleu:13a", "decoding.max_length_ratio=2.5"]
    chosen += ["data.train=old.tsv"]
    kept = ["data.dataset=files", *CHANGED]
    other = write_config("other.json", PRESETS["authors"], *chosen, *kept)
    config, *_ = parse([*text.split(), "--config", "other.json"])
    assert "languages, columns, metric" in capsys.readouterr().out
    plain = ["data.source_language=None", "data.target_language=None"]
    plain += ["decoding.max_length_ratio=null", "decoding.min_length_ratio=0"]
    plain += ["data.train=pairs.tsv"]
    assert config == override(PRESETS["authors"], [*kept, *plain])
    config, *_ = parse(["--config", "other.json", "--metric", "chrf"])
    assert config == override(other, ["training.metric=chrf"])


@pytest.mark.parametrize(
    "argv, languages",
    [
        ("", "en de"),
        ("--data.source-language en-GB", "en-GB de"),
        ("--set data.target_language=gsw", "en gsw"),
        ("--config american.yaml", "en-US de"),
        ("--config american.yaml --data.source-language en-GB", "en-GB de"),
        # The languages of a file of settings are those of its own text.
        ("--config french.yaml", "en de"),
    ],
)
def test_settings_override_the_languages_in_file_names(argv, languages):
    Path("config.json").write_text("of another program")
    data = parse(["text.en", "text.de", *argv.split()]).config.data
    assert [data.source_language, data.target_language] == languages.split()


def sizes_of(argv):
    config = parse(argv.split()).config
    return config.model.units, config.model.source_vocabulary_size


@pytest.mark.slow
def test_size_of_the_text_chooses_the_preset(capsys):
    # 10 characters on one side, 20 on the other.
    line = "a b c d ef\ta b c d e f g h i jk\n"
    for pairs, units, size in [(9999, 256, 1499), (10000, 512, 8000)]:
        Path("text.tsv").write_text(line * pairs)
        assert sizes_of("text.tsv") == (units, size)
    printed = capsys.readouterr().out.splitlines()
    assert printed == [
        "9,999 training pairs: --preset tiny --set "
        "model.source_vocabulary_size=1499 --set "
        "model.target_vocabulary_size=1499",
        "at least 10,000 training pairs: --preset small",
    ]
    # The flags that it prints choose the same settings.
    Path("text.tsv").write_text(line * 9999)
    chosen = parse(["text.tsv", *printed[0].split()[3:]]).config
    assert chosen == parse(["text.tsv"]).config


@pytest.mark.slow_after_first
@pytest.mark.parametrize(
    "more, units, size",
    [
        ("--preset small", 512, 8000),
        ("--preset tiny", 256, 500),
        ("--units 64", 64, 50),
        ("--set data.tokenizer=words", 256, 500),
        (f"--set {SIZES}", 256, 700),
        ("--config whole.json", 8, 50000),
        ("--config some.yaml", 8, 50),
    ],
)
def test_named_settings_are_kept(more, units, size, capsys):
    assert sizes_of(f"pairs.tsv {more}") == (units, size)
    printed = capsys.readouterr().out.splitlines()
    if "whole" in more:
        (line,) = printed
        assert line.startswith("--config is of another run")
    else:
        assert bool(printed) != ("--preset" in more)


def test_existing_runs_keep_their_settings(capsys):
    begun = parse(["pairs.tsv", "--preset", "small", "--units", "64"]).config
    write_config("run/config.json", begun)
    found = parse(["pairs.tsv", "--run-dir", "run", "--epochs", "3"]).config
    assert found == override(begun, ["epochs=3"])
    # The folder or its configuration is enough, as the text may have moved.
    for path in Path().glob("pairs.*"):
        path.unlink()
    for named in (["--run-dir", "run"], ["--config", "run/config.json"]):
        found = parse(["--run-dir", "run", *named, "--epochs", "3"]).config
        assert found == override(begun, ["epochs=3"])
    assert capsys.readouterr().out == ""
    parse(["--run-dir", "other"])
    printed = capsys.readouterr().out
    assert printed.startswith("There is no run in other. No --preset: training")
    parse([])
    assert capsys.readouterr().out.startswith("No --preset: training the demo")


@pytest.mark.parametrize(
    "argv",
    [
        "pairs.tsv --init-from parent",
        "pairs.tsv --config tuned.yaml",
        "pairs.tsv --config tuned.yaml --preset tiny",
        "--set data.train=pairs.tsv --init-from parent",
        "--set data.train=pairs.tsv --config tuned.yaml",
    ],
)
def test_fine_tuned_runs_have_the_model_of_their_parent(argv, capsys):
    changes = ["model.units=64", "data.train=old.tsv", "data.dev=old.tsv"]
    parent = write_config("parent/config.json", PRESETS["small"], *changes)
    Path("parent/best.weights.h5").touch()
    config = parse(argv.split()).config
    dropout = 0.2 if "tiny" in argv else 0.5
    assert config.model == replace(parent.model, dropout=dropout)
    assert config.training.init_from == "parent"
    assert (config.data.train, config.data.dev) == ("pairs.tsv", None)
    assert config.training.batch_size == (7 if "yaml" in argv else 64)
    assert capsys.readouterr().out == ""
    # Complete settings replace those of the parent, except the sizes.
    changes = ["init_from=parent", "training.frozen=encoder"]
    changes += ["data.tokenizer=words", "data.new_words=5"]
    changes += [
        f"model.{side}_vocabulary_size=71" for side in ("source", "target")
    ]
    whole = write_config("tuned.yaml", PRESETS["tiny"], *changes)
    if "yaml" in argv:
        config = parse(argv.split()).config
        sizes = [f"{s}_vocabulary_size" for s in ("source", "target")]
        parents = {size: getattr(parent.model, size) for size in sizes}
        assert config.model == replace(whole.model, **parents)
        assert config.training.frozen == ("encoder",)
        assert config.data.new_words == 5
    # A run that has begun keeps its own.
    write_config("run/config.json", whole)
    again = ["--config", "run/config.json", "--run-dir", "run"]
    assert parse([*again, "--preset", "demo"]).config == whole


def test_every_short_name_is_a_flag(capsys):
    with pytest.raises(SystemExit):
        main(["train", "--help"])
    printed = capsys.readouterr().out
    for name in SHORT_NAMES:
        assert f"--{name.replace('_', '-')} " in printed


def test_assignments_end_where_a_file_begins():
    argv = ["--set", "a=1", "b.c=2", "x.tsv", "d=3", "--set", "e", "--f"]
    assert spread_assignments(argv) == [*argv[:2], "--set", *argv[2:]]


def test_settings_reach_the_recipe(calls):
    argv = "train pairs.tsv --run-dir here --seed 5 --stop-after 1h30m"
    assert main([*argv.split(), "--devices", "1"]) == 0
    ((config, *given),) = calls
    assert (config.training.seed, config.data.train) == (5, "pairs.tsv")
    assert given == [Path("here"), 5400.0, Devices()]


def test_durations():
    texts = "45s", "90m", "1h30m", "1.5h", "2d", "0s"
    assert [*map(seconds, texts)] == [45, 5400, 5400, 5400, 172_800, 0]


@pytest.mark.parametrize("text", ["", "3", "3 h", "h", "-3h", "3hours", "1h3"])
def test_wrong_durations_are_refused_before_anything_is_announced(text, capsys):
    with pytest.raises(ValueError, match="--stop-after.*3h, 90m or 1h30m. Rec"):
        parse([f"--stop-after={text}"])
    assert capsys.readouterr().out == ""


@pytest.mark.slow_after_first
@pytest.mark.parametrize(
    "ended, flags, status",
    [
        (True, [], 0),
        (False, [], 75),
        (False, ["--stop-after", "0s"], 0),
        # A signal came earlier.
        (False, ["--stop-after", "1h"], 75),
        (LostProcessError("it broke off"), [], 75),
        (ValueError("no such file"), [], 2),
    ],
)
def test_exit_status_shows_whether_the_run_can_continue(
    ended, flags, status, monkeypatch
):
    def run_recipe(*given):
        if isinstance(ended, Exception):
            raise ended
        return ended

    monkeypatch.setattr("luong_keras.recipe.stages.run_recipe", run_recipe)
    argv = ["train", "pairs.tsv", "--run-dir", "here", *flags]
    assert main(argv) == status


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_float64_is_enabled_on_jax(precision, monkeypatch, calls):
    from luong_keras.ops import backends
    from luong_keras.recipe import devices

    pytest.importorskip("jax")
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    monkeypatch.setattr("keras.backend.backend", lambda: "jax")
    monkeypatch.setattr(backends, "enable_float64", lambda: calls.append(64))
    on_jax = Devices(rank=1, on_jax=True)
    monkeypatch.setattr(devices, "jax_devices", lambda _: on_jax)
    monkeypatch.setattr(devices, "leave_processes", lambda _: None)
    argv = ["train", "pairs.tsv", "--set", f"model.precision={precision}"]
    assert main([*argv, "--backend", "jax"]) == 0
    assert calls[:-1] == ([64] if precision == "float64" else [])


def test_parallel_microbatches_share_the_cores(monkeypatch, calls):
    from luong_keras.text import threads

    name = "TF_NUM_INTRAOP_THREADS"
    monkeypatch.setattr(threads, "available_cores", lambda: 8)
    monkeypatch.setenv(name, "")
    for settings, share in (
        ([], None),
        (["--set", "training.parallel_microbatches=4"], "2"),
    ):
        monkeypatch.delenv(name, raising=False)
        assert main(["train", "pairs.tsv", *settings]) == 0
        assert os.environ.get(name) == share


@pytest.mark.parametrize("process, epochs", [(0, 7), (1, 7), (0, 8)])
def test_the_first_process_scores_alone(process, epochs, monkeypatch, calls):
    """Check that it does not wait for processes that have ended, as in pods."""
    monkeypatch.setenv("KERAS_BACKEND", "tensorflow")
    for name, value in {
        "JOB_ADDRESSES": "localhost:1234",
        "NUM_PROCESSES": "2",
        "PROCESS_ID": str(process),
    }.items():
        monkeypatch.setenv(f"KERAS_DISTRIBUTION_{name}", value)
    run = RunFolder("run")
    write_config(run.config, PRESETS["authors"], *CHANGED)
    run.snapshot.touch()
    run.log.write_text("{}\n" * 7)
    run.last_weights.touch()
    argv = ["train", "--run-dir", "run", "--backend", "jax"]
    status = main([*argv, "--epochs", str(epochs)])
    # Keras, which is on TensorFlow here, refuses to train on JAX.
    assert status == (2 if epochs == 8 else 0)
    assert len(calls) == (status == 0 and process == 0)


def test_every_setting_has_a_help_text_of_its_own(capsys):
    with pytest.raises(SystemExit):
        main(["train", "--help-all"])
    texts, indent, printed = {}, 0, capsys.readouterr().out
    assert "--data.no-lowercase" not in printed
    for line in printed.splitlines():
        text = line.strip("│ ")
        if text.startswith("--"):
            indent, flag = line.index("--"), text.split()[0]
            texts[flag] = ""
        elif texts and line[: indent + 2].strip("│ ") == "":
            texts[flag] += f"{text} "
    texts = {
        flag: text.partition("(default")[0].strip()
        for flag, text in texts.items()
        if "." in flag
    }
    assert len(texts) > 100
    assert [flag for flag, text in texts.items() if not text] == []
    assert len({*texts.values()}) == len(texts)


def test_defaults_may_be_without_effect():
    assignments = ["model.attention.kind=none", "model.attention.half_width=10"]
    parse(["--set", *assignments])
