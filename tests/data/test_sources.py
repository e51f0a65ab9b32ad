"""Sources of text: each kind gives the same pairs."""

import bz2
import csv
import gzip
import io
import json
import lzma
import re
import sys
from functools import partial
from pathlib import Path
from xml.sax.saxutils import escape

import pytest
import tensorflow as tf
from backports import zstd

from luong_keras.config import RunConfig
from luong_keras.config.values import (
    config_from_dict,
    config_to_dict,
    with_values,
)
from luong_keras.data.corpus_writer import write_corpus
from luong_keras.data.sources.columns import (
    Columns,
    RequestedColumns,
    choose_columns,
    guess_columns,
)
from luong_keras.data.sources.python_objects import read_iterable
from luong_keras.data.sources.registry import (
    FILE_KINDS,
    OBJECT_READERS,
    file_kind,
    object_reader,
)
from luong_keras.data.sources.source_kinds import one_line
from luong_keras.data.text_files import read_text, text_sources
from luong_keras.files.text_lines import read_lines
from luong_keras.presets import PRESETS
from luong_keras.recipe.preparation import prepare_text
from luong_keras.recipe.user_text import text_settings
from luong_keras.training.run_folder import RunFolder

PAIRS = [
    (f'the "{i}" cat, {"very " * (i % 7)}old; <b> & so', f"die Katze ö {i}")
    for i in range(297)
] + [
    ("a tab\there", "und\nein Ende"),
    ("=1+1", "'quoted'"),
    ("line\u2028separator", "  spaces  "),
]


def file_content(pairs, suffix):
    """Return the content of a file with the pairs, by its suffix."""
    if suffix == ".tsv":
        rows = [[re.sub(r"[\t\n]", " ", s) for s in pair] for pair in pairs]
        return "".join("\t".join(row) + "\n" for row in rows).encode()
    if suffix in (".jsonl", ".ndjson"):
        rows = [{"id": i, "en": s, "de": t} for i, (s, t) in enumerate(pairs)]
        return "".join(json.dumps(row) + "\n" for row in rows).encode()
    if suffix == ".csv":
        file = io.StringIO(newline="")
        writer = csv.writer(file)
        writer.writerow(["id", "German", "English"])
        writer.writerows([i, t, s] for i, (s, t) in enumerate(pairs))
        return file.getvalue().encode()
    if suffix == ".xml":
        # A WMT test set: per document the sources, then the references.
        sides = [
            "".join(
                f"<p><seg id='{i}'>{escape(t)}</seg></p>\n" for i, t in side
            )
            for side in map(enumerate, zip(*pairs, strict=True))
        ]
        return (
            f"<dataset><collection><doc><hyp lang='de'>{sides[0]}</hyp>"
            f"<src lang='en'>{sides[0]}</src>"
            f"<ref lang='de' translator='A'>{sides[1]}</ref>"
            f"<ref lang='de' translator='B'>{sides[0]}</ref></doc>"
            "</collection></dataset>"
        ).encode()
    assert suffix == ".tmx"
    units = "".join(
        "<tu><tuv xml:lang='de-DE'><seg>"
        f"<bpt i='1'>&lt;i></bpt>{escape(t)}<ept i='1'>code</ept></seg></tuv>"
        f"<tuv xml:lang='EN'><seg>{escape(s[:2])}<hi>{escape(s[2:])}</hi>"
        "</seg></tuv><tuv xml:lang='de-DE'><seg>another</seg></tuv></tu>\n"
        for s, t in pairs
    )
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        '<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<tmx version="1.4"><header '
        f"srclang='en'/><body>{units}</body></tmx>"
    ).encode()


COMPRESS = {
    "": bytes,
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".zst": zstd.compress,
    ".bz2": bz2.compress,
}


def file_source(kind, compression, folder):
    path = folder / f"pairs{kind}{compression}"
    path.write_bytes(COMPRESS[compression](file_content(PAIRS, kind)))
    return path


def two_files(compression, folder):
    paths = [folder / f"text.{e}{compression}" for e in ("en", "de")]
    for path, side in zip(paths, zip(*PAIRS, strict=True), strict=True):
        text = "".join(one_line(text) + "\n" for text in side)
        path.write_bytes(COMPRESS[compression](text.encode()))
    return tuple(map(str, paths))


def prefix(folder):
    two_files(".zst", folder)
    return str(folder / "text")


def data_frame(folder):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(PAIRS, columns=["src", "tgt"])
    return frame.reset_index()[["index", "tgt", "src"]]


def hugging_face(folder):
    datasets = pytest.importorskip("datasets")
    rows = [{"id": "x", "translation": {"en": s, "de": t}} for s, t in PAIRS]
    return datasets.Dataset.from_list(rows)


def tensorflow_dataset(folder):
    sides = tuple(map(list, zip(*PAIRS, strict=True)))
    return tf.data.Dataset.from_tensor_slices(sides)


def tensorflow_batches(folder):
    dataset = tensorflow_dataset(folder)
    named = dataset.map(lambda s, t: {"de": t, "n": 0, "en": s})
    return named.batch(7)


SOURCES = {
    "list": lambda folder: PAIRS,
    "iterator": lambda folder: iter(PAIRS),
    "records": lambda folder: ({"de": t, "en": s} for s, t in PAIRS),
    "data_frame": data_frame,
    "hugging_face": hugging_face,
    "streamed": lambda folder: hugging_face(folder).to_iterable_dataset(),
    "tf_data": tensorflow_dataset,
    "tf_batches": tensorflow_batches,
    **{f"two_files{c}": partial(two_files, c) for c in ("", ".gz", ".xz")},
    "prefix": prefix,
    **{
        f"{suffix}{compression}": partial(file_source, suffix, compression)
        for suffix in FILE_KINDS
        for compression in COMPRESS
        # Each kind with one compression, `.tsv` with every compression.
        if suffix == ".tsv" or compression in ("", ".zst")
    },
}


def text_of(given, folder):
    """Return the number of pairs and the text of a run."""
    run = RunFolder(folder)
    settings = text_settings(run, given)
    config = with_values(PRESETS["small"], settings)
    datasets, corpus = prepare_text(config, run)
    text = sorted(datasets.dev), sorted(datasets.test)
    return len(corpus), corpus.fingerprint, *text


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    return text_of(PAIRS, tmp_path_factory.mktemp("list"))


@pytest.mark.parametrize("name", SOURCES)
def test_same_text_from_every_source(name, tmp_path, expected):
    assert text_of(SOURCES[name](tmp_path), tmp_path / "run") == expected
    assert expected[0] == 300 - 2 * 30


def test_all_registered_kinds_are_tested(tmp_path):
    assert set(FILE_KINDS) <= set(SOURCES)
    readers = {
        object_reader(SOURCES[name](tmp_path))
        for name in ("list", "data_frame", "tf_data")
    }
    assert readers == {*OBJECT_READERS.values(), read_iterable}


@pytest.mark.parametrize(
    "names, languages, expected",
    [
        (["source", "target"], "en de", (0, 1)),
        (["id", "TRG", "SRC"], "en de", (2, 1)),
        (["de", "en"], "en de", (1, 0)),
        (["translation.de", "translation.en-GB"], "en de", (1, 0)),
        (["Czech sentence", "text_en", "id"], "cs en", (0, 1)),
        (["en", "en_text", "de"], "en de", None),  # two columns of one language
        (["a cat", "eine Katze"], "en de", None),
        (["in de tuin", "en de man"], "en de", None),
        # Columns of codes are no text.
        (["src_lang", "tgt_lang", "en_text", "de_text"], "en de", (2, 3)),
        (["source_language", "target language"], "en de", None),
        (["lang_en", "language: de"], "en de", (0, 1)),
        # Only a region or script may follow the language.
        (["text-EN", "text-DE"], "en de", (0, 1)),
        (["en_US", "de_AT"], "en de", (0, 1)),
        (["eng_Latn", "zho_Hans"], "en zh", (0, 1)),
        (["English", "Chinese (Simplified)"], "en zh", (0, 1)),
        (["Text (EN)", "Text (DE)"], "en de", (0, 1)),
        (["english name", "german name"], "en de", None),
        (["my_en-US", "my_de-DE"], "en de", None),
        (["en to de-DE", "de to en-US"], "en de", None),
    ],
)
def test_columns_are_guessed_by_name(names, languages, expected):
    assert guess_columns(names, tuple(languages.split())) == expected


def test_choices_of_columns_are_reported():
    requested = RequestedColumns(columns=("b", "1"))
    assert choose_columns(["a", "b"], requested, "x") == Columns(
        1, 0, "x: source = 'b', target = 'a' (as data.columns says)", None
    )
    found = choose_columns(["German", "English"], RequestedColumns(), "x")
    assert found.languages == ("en", "de")


@pytest.mark.parametrize(
    "names, columns, message",
    [
        (["english", "german"], ("englisch", "german"), "Did you mean english"),
        (["a", "b"], ("a", "1"), "must be two columns"),
        (["a", "b", "a"], ("a", "b"), "'a', the name of several columns"),
        (["a", "b", "c"], None, r"cannot be guessed.*data\.columns"),
    ],
)
def test_wrong_or_absent_columns_are_refused(names, columns, message):
    with pytest.raises(ValueError, match=message):
        choose_columns(names, RequestedColumns(columns=columns), "x")


ZW = ("z", "w")
XYZW = [("x", "y"), ZW]


def pairs_of(given, folder):
    """Return the pairs that a run in the folder would read."""
    settings = text_settings(RunFolder(folder), given)
    sources = text_sources(settings["data.train"], RequestedColumns())
    return list(read_text(sources, False))


def read(path, content, columns=None, languages=("en", "de"), skip=False):
    path.write_bytes(content)
    sources = text_sources(str(path), RequestedColumns(languages, columns))
    return sources[0].note, list(read_text(sources, skip))


@pytest.mark.parametrize(
    "name, content, columns, pairs",
    [
        ("a.tsv", b"x\ty\n", None, [("x", "y")]),
        ("a.tsv", b"eng\tger\nx\ty\n", None, [("x", "y")]),
        ("a.tsv", b"Italian\tfra\nx\ty\n", None, [("x", "y")]),
        ("a.tsv", b"Thai\tSlovene\nx\ty\n", None, [("x", "y")]),
        ("a.tsv", b"SRC\tREF\nx\ty\n", None, [("x", "y")]),
        # Joined files, each with a byte order mark.
        ("a.tsv", b"\xef\xbb\xbfx\ty\n\xef\xbb\xbfz\tw\n", ("1", "2"), XYZW),
        # Files pasted side by side, each with a byte order mark.
        ("a.tsv", b"\xef\xbb\xbfx\t\xef\xbb\xbfy\nz\tw\n", ("1", "2"), XYZW),
        # Cells quoted as pandas does; other quotes are text.
        ("a.tsv", b'"a ""b"" c"\t"x" y\n', None, [('a "b" c', '"x" y')]),
        ("a.tsv", b'"x"\t"x" and "y"\n', None, [('"x"', '"x" and "y"')]),
        # A comma in the text is not the delimiter.
        ("a.csv", b"x, a, b;y, a\nz;w\n", None, [("x, a, b", "y, a"), ZW]),
        ("a.csv", b"x, a;y\nz, b;w\n", None, [("x, a", "y"), ("z, b", "w")]),
        ("a.csv", b"x, y\nz, w\n", None, [("x", " y"), ("z", " w")]),
        # Nor is one in a number.
        ("a.csv", b"3,1;x\n2,5;y\n", None, [("3,1", "x"), ("2,5", "y")]),
        ("a.csv", b"1,2\n3,4\n", None, [("1", "2"), ("3", "4")]),
        ("a.csv", b"sep=;\nen;de\nx, a;y\n", None, [("x, a", "y")]),
        ("a.csv", b"sep=;\nx;y\nz;w\n", None, XYZW),
        ("a.tsv", b"de\ten\nx\ty\n", None, [("y", "x")]),
        ("a.tsv", b"x\ty\tz\n", ("3", "1"), [("z", "x")]),
        ("a.tsv", b"p\tq\tr\nx\ty\tz\n", ("r", "p"), [("z", "x")]),
        # Column numbers are not column names in a line of data.
        ("a.tsv", b"x\ty\t1\nz\tw\t2\n", ("1", "2"), XYZW),
        ("a.tsv", b"3\tx\ty\n4\tz\tw\n", ("2", "3"), XYZW),
        ("a.tsv", b"2\ty\n3\tw\n", ("1", "2"), [("2", "y"), ("3", "w")]),
        ("a.csv", b"1,x\n", ("2", "1"), [("x", "1")]),
        ("a.tsv", b"2\t1\nx\ty\n", ("1", "2"), [("2", "1"), ("x", "y")]),
        ("a.tsv", b"0\t1\nx\ty\n", ("0", "1"), [("x", "y")]),
        # Names of languages are a header.
        ("a.tsv", b"it\tes\nx\ty\n", ("1", "2"), [("x", "y")]),
        ("a.tsv", b"de\ten\nx\ty\n", ("1", "2"), [("x", "y")]),
        ("a.tsv", b"French\tEnglish\nx\ty\n", ("1", "2"), [("x", "y")]),
        # Empty lines are skipped.
        ("a.tsv", b"x\ty\n\nz\tw\n\n", None, XYZW),
        ("a.tsv", b"\nde\ten\nx\ty\n", None, [("y", "x")]),
        ("a.csv", b"\nid,en,de\n1,x,y\n", None, [("x", "y")]),
        ("a.csv", b"sep=;\n\nen;de\n\nx;y\n", None, [("x", "y")]),
        # All cells are quoted.
        (
            "a.tsv",
            b'"en"\t"de"\n"x"\t"y ""q"" r"\n"two\nlines"\t"w"\n',
            None,
            [("x", 'y "q" r'), ("two lines", "w")],
        ),
        ("a.tsv", b'"x"\t"y\tz"\n"z"\t"w"\n', None, [("x", "y z"), ZW]),
        # The first lines end inside a cell.
        (
            "a.tsv",
            b'"x"\t"y"\n' * 19 + b'"z"\t"two\nlines"\n',
            None,
            [("x", "y")] * 19 + [("z", "two lines")],
        ),
        ("a.tsv", b'"x"\t"y"\n"z"\tw\n', None, [('"x"', '"y"'), ('"z"', "w")]),
        (
            "a.tsv",
            b'"x"\t"y"\n"z\tw\nx\ty\n',
            None,
            [('"x"', '"y"'), ('"z', "w"), ("x", "y")],
        ),
        ("a.csv", b"x,y\n", None, [("x", "y")]),
        ("a.csv", b'id;en;de\n1;"x ""q""; 1";y\n', None, [('x "q"; 1', "y")]),
        ("a.csv", b'en,de\n"two\nlines",y\n', None, [("two lines", "y")]),
        ("a.csv", b'en,de\r\na\rb,"y\rz"\r\n', None, [("a b", "y z")]),
        ("a.csv", b'"a, b\nc, d\ne",y\n', None, [("a, b c, d e", "y")]),
        ("a.jsonl", b'["x", "y"]\n\n["z", "w"]\n', None, XYZW),
        # The test pairs of a run, without and with gold links.
        ("a.jsonl", b'["x", "y", null]\n', None, [("x", "y")]),
        ("a.jsonl", b'["x", "y", "0-0 1p2"]\n', None, [("x", "y")]),
        ("a.jsonl", b'{"q": {"r": "x"}, "s": "y"}', ("q.r", "s"), [("x", "y")]),
    ],
)
def test_columns_of_files_by_content(tmp_path, name, content, columns, pairs):
    note, found = read(tmp_path / name, content, columns)
    assert found == pairs
    assert (note is None) == (name == "a.jsonl" and columns is None)


MORE = "more columns than the first line"


@pytest.mark.parametrize(
    "name, content, message, reason",
    [
        ("a.csv", b"en,de\nx,y\nz\n", "Line 3 .* 2 columns", None),
        # The number is of the line, not the record: the first pair takes two.
        ("a.csv", b'en,de\n"two\nlines",y\nz\n', "Line 4 .* 2 columns", None),
        ("a.tsv", b"a\tb\nx\ty\tz\n", "Line 2 .* 2 columns", MORE),
        ("a.tsv", b"a\tb\nx\n", "Line 2 .* does not have 2 columns", None),
        ("a.csv", b"a,b\nx,y,z\n", "Line 2 .* 2 columns", MORE),
        ("a.jsonl", b'["x", "y"]\n{\n', "Line 2 .* is not JSON", "no record"),
        (
            "a.jsonl",
            b'["x", "y"]\n' + b"[" * 100_000,
            "Line 2 of .* is not JSON",
            "no record",
        ),
        (
            "a.jsonl",
            b'["x", "y"]\n["x", "y", "z"]\n',
            "Line 2 of .* is neither a .* Expected: a source and a target",
            "no record",
        ),
        (
            "a.jsonl",
            b'["x", "y"]\n"hello"\n',
            "Line 2 of .* is neither a record nor a pair.*: '\"hello\"'",
            "no record",
        ),
        # The first readable line determines the fields.
        ("a.jsonl", b'{\n["x", "y"]\n', "Line 1 .* is not JSON", "no record"),
        (
            "a.jsonl",
            b'{"en": "x", "de": "y"}\n{"en": "x", "de": 3.5}\n',
            "Line 2 of .* has no target sentence.*Received: 3.5",
            "no target",
        ),
        (
            "a.tmx",
            file_content(PAIRS[:2], ".tmx").replace(
                b"<tu><tuv", b"<tu/><tu><tuv", 1
            ),
            "Unit 1 of .*, line 3, has no source sentence",
            "no source",
        ),
    ],
)
def test_bad_records_are_named(tmp_path, name, content, message, reason):
    with pytest.raises(ValueError, match=message):
        read(tmp_path / name, content)
    _, found = read(tmp_path / name, content, skip=True)
    (bad,) = [pair for pair in found if None in pair]
    assert bad.problem == reason
    place = re.search(r"[Ll]ine (\d+)", message)[1]
    assert bad.place == f"{name}:{place}"


def test_bad_bytes_of_records_are_refused_or_counted(tmp_path):
    content = b'["x", "y"]\n["x", "y\xff"]\n'
    with pytest.raises(ValueError, match="Line 2 of .* is not UTF-8"):
        read(tmp_path / "a.jsonl", content)
    _, found = read(tmp_path / "a.jsonl", content, skip=True)
    places = {"count": 1, "first_lines": ["a.jsonl:2"]}
    assert write_corpus(found, tmp_path).skipped == {"not UTF-8": places}
    # Such a line does not choose the fields.
    content = b'{"en\xff": "x", "d": "u"}\n{"en": "x", "de": "y"}\n'
    note, found = read(tmp_path / "b.jsonl", content, skip=True)
    assert "source = 'en'" in note
    assert found[1] == ("x", "y")


@pytest.mark.parametrize(
    "name, content",
    [
        ("a.tsv", b"1.2\tx\ty\n1.3\tz\tw\n"),
        ("a.tsv", b"http://a\t0.8\tx\ty\n"),
        ("a.csv", b"1,x,y\n2,z,w\n"),
    ],
)
def test_more_than_two_columns_must_be_named(tmp_path, name, content):
    count = content.splitlines()[0].replace(b"\t", b",").count(b",") + 1
    match = rf"cannot be guessed.*Received: {count}, .*data\.columns"
    with pytest.raises(ValueError, match=match):
        read(tmp_path / name, content)
    _, found = read(tmp_path / name, content, (str(count - 1), str(count)))
    assert found[0] == ("x", "y")


@pytest.mark.parametrize(
    "content, line",
    [
        (b'en,de\n"never closed,y\nz,w\n' + b"a,b\n" * 50, 2),
        (b'en,de\na,b\n"stray,y\nz,w "q",u\n', 3),
        (b'en,de\n"Yes" he said,"Ja" sagte er\n', 2),
        # A later quote happens to close the cell.
        (b'en,de\na,b\n"Hello,Hallo\nc,d\ne,f\nsize 5",Groesse 5\n', 3),
        (b'en, de\n"Hello, Hallo\nc, d\ne, f\nsize 5", Groesse 5\n', 2),
    ],
)
@pytest.mark.parametrize("skip", [False, True])
def test_unclosed_quotes_are_refused(tmp_path, content, line, skip):
    with pytest.raises(ValueError, match=f"begins in line {line} of .*quotes"):
        read(tmp_path / "a.csv", content, skip=skip)


def test_only_a_field_of_several_lines_has_a_longest_length(tmp_path):
    limit = csv.field_size_limit()
    for quote in ("", '"'):
        content = f"{quote}{'x' * 2 * limit}{quote},y\nz,w\n"
        _, found = read(tmp_path / "a.csv", content.encode())
        assert found == [("x" * 2 * limit, "y"), ZW]
    assert csv.field_size_limit() == limit
    # Such a field is found before the end of the file.
    content = 'en,de\n"never closed,y\n' + "a,b\n" * limit + '"'
    with pytest.raises(ValueError, match=f"in line 2 of .*{limit}"):
        read(tmp_path / "a.csv", content.encode())


def test_declared_entities_and_damaged_tmx_files_are_refused(tmp_path):
    (tmp_path / "secret").write_text("secret")
    whole = file_content(PAIRS[:2], ".tmx")
    for entity in ('"ha"', f'SYSTEM "{tmp_path}/secret"'):
        doctype = f"<!DOCTYPE tmx [<!ENTITY e {entity}>]>".encode()
        content = whole.replace(b'<!DOCTYPE tmx SYSTEM "tmx14.dtd">', doctype)
        content = content.replace(b"die", b"&e;")
        with pytest.raises(ValueError, match="declares entities"):
            read(tmp_path / "a.tmx", content)
    with pytest.raises(ValueError, match="not a complete TMX file"):
        read(tmp_path / "a.tmx", whole[:-40])
    with pytest.raises(ValueError, match="en and fr.*Received: de-DE, EN"):
        read(tmp_path / "a.tmx", whole, languages=("en", "fr"))


@pytest.mark.parametrize(
    "option, names",
    [
        ("languages", ("de", "de-DE")),
        ("languages", ("de", "de")),
        ("columns", ("EN", "EN")),
    ],
)
def test_one_variant_is_not_both_sides(tmp_path, option, names):
    content = file_content(PAIRS[:2], ".tmx")
    with pytest.raises(ValueError, match="lacks one of the languages"):
        read(tmp_path / "a.tmx", content, **{option: names})


def memory(*units):
    """Return a TMX file of units, each with texts by language."""
    variants = [
        [
            f"<tuv xml:lang='{name}'><seg>{text}</seg></tuv>"
            for name, text in unit.items()
        ]
        for unit in units
    ]
    body = "".join(f"<tu>{''.join(unit)}</tu>" for unit in variants)
    return f"<tmx version='1.4'><body>{body}</body></tmx>".encode()


def test_variants_of_a_language_are_not_mixed(tmp_path):
    content = memory(
        {"en": "1", "zh-CN": "中1", "zh-TW": "台1"},
        {"en": "2", "zh-TW": "台2", "zh-CN": "中2"},
        {"en": "3", "zh-TW": "台3", "fr": "trois"},
    )
    note, found = read(tmp_path / "a.tmx", content, languages=("en", "zh"))
    assert "target = 'zh-CN'" in note
    # Units without the variant are not lost.
    assert [pair[1] for pair in found] == ["中1", "中2", "台3"]


@pytest.mark.parametrize("first", ["en", "en-GB"])
def test_no_side_takes_the_variant_of_the_other(tmp_path, first):
    content = memory(
        {first: first, **{name: name for name in ("en", "en-GB")}},
        {"en-gb": "lift"},
        {"EN-GB": "lift", "en-US": "elevator"},
    )
    expected = [("en", "en-GB"), (None, "lift"), ("elevator", "lift")]
    for names, step in ((("en", "en-GB"), 1), (("en-GB", "en"), -1)):
        for option in ("languages", "columns"):
            options = {option: names, "skip": True}
            _, found = read(tmp_path / "a.tmx", content, **options)
            assert [pair[::step] for pair in found] == expected


def test_named_html_entities_of_tmx_files_are_read(tmp_path):
    """Check entities that an external `DOCTYPE` may declare."""
    content = file_content([("a&b", "c")], ".tmx").replace(b"amp;", b"nbsp;")
    _, found = read(tmp_path / "a.tmx", content)
    assert found == [("a\u00a0b", "c")]
    declared = b'<!DOCTYPE tmx SYSTEM "tmx14.dtd">'
    message = "not a complete TMX file.*line 3: Entity 'nbsp' not defined"
    with pytest.raises(ValueError, match=message):
        read(tmp_path / "a.tmx", content.replace(declared, b""))


def test_segments_without_numbers_are_paired_in_order(tmp_path):
    content = re.sub(rb" id='\d+'", b"", file_content(PAIRS[:9], ".xml"))
    _, found = read(tmp_path / "a.xml", content)
    assert found == PAIRS[:9]
    content = content.replace(b"<src lang='en'>", b"<src>")
    with pytest.raises(ValueError, match="lacks one.*Received: src, de"):
        read(tmp_path / "a.xml", content)
    _, found = read(tmp_path / "a.xml", content, ("src", "de"))
    assert found == PAIRS[:9]


def test_control_characters_become_spaces_before_preprocessing(tmp_path):
    (tmp_path / "a.en").write_bytes(b"old\x00teacher\n")
    (tmp_path / "a.de").write_bytes(b"alter\x7fLehrer\n")
    sources = text_sources(str(tmp_path / "a"), RequestedColumns())
    corpus = write_corpus(
        read_text(sources, True),
        tmp_path / "corpus",
        preprocess_source=lambda text: text.replace("\x00", ""),
    )
    assert corpus.lines([0]) == ([b"old teacher"], [b"alter Lehrer"])


def test_segments_of_sgml_files_are_read_as_lines(tmp_path):
    text = (
        '<srcset setid="x">\n<doc docid="ref">\n<p>\n<seg id="1"> a &amp; b '
        "</seg>\n<SEG id='2'>two\n lines</SEG></p></doc></srcset>\n"
    )
    names = [str(tmp_path / name) for name in ("a-src.en.sgm", "a-ref.de.sgm")]
    for name in names:
        Path(name).write_text(text)
    found = list(read_text(text_sources(names, RequestedColumns()), False))
    assert found == [(x, x) for x in ("a & b", "two lines")]
    assert [pair.place for pair in found] == [f"a-src.en.sgm:{i}" for i in "12"]
    # From a set with both sides, the sources are read.
    path = tmp_path / "a.xml"
    path.write_bytes(file_content(PAIRS, ".xml"))
    sources = [" ".join(source.split()) for source, _ in PAIRS]
    assert list(read_lines(path)) == sources
    # Unclosed elements; in quadratic time each line would take minutes.
    for tag in ("<ref>", "<hyp ", "<seg>", "<seg "):
        path.write_text(100_000 * tag + "<seg>a <b>cat</seg>")
        with pytest.raises(ValueError, match="100001 such tags .* 1 source"):
            list(read_lines(path))


def test_sgml_without_segments_is_refused(tmp_path):
    for name in ("a.en", "a.de"):
        (tmp_path / f"{name}.sgm").write_text("<srcset><p>a</p></srcset>")
    names = [str(tmp_path / f"{name}.sgm") for name in ("a.en", "a.de")]
    settings = text_settings(RunFolder(tmp_path / "run"), names)
    assert settings["data.target_language"] == "de"
    with pytest.raises(ValueError, match="Expected: segments in .*Received: n"):
        list(read_text(text_sources(names, RequestedColumns()), True))


@pytest.mark.parametrize("compression", [".gz", ".xz", ".zst", ".bz2"])
def test_damaged_compressed_files_are_refused(tmp_path, compression):
    whole = COMPRESS[compression](file_content(PAIRS, ".tsv"))
    for content in (whole[:-20], b"plain\tplain\n"):
        name = f"a.tsv{compression}"
        with pytest.raises(ValueError, match=f"{name} is not a whole"):
            read(tmp_path / name, content)


@pytest.mark.parametrize(
    "blocked, name", [("backports", "a.tsv.zst"), ("lxml", "a.tmx")]
)
def test_missing_packages_are_named(tmp_path, monkeypatch, blocked, name):
    monkeypatch.setitem(sys.modules, blocked, None)
    with pytest.raises(
        ImportError, match=r"pip install 'luong-keras\[train\]'"
    ):
        read(tmp_path / name, b"x")


def test_file_kind_depends_on_the_suffix(tmp_path):
    assert file_kind("A.TSV") is file_kind("a.tsv.zst") is FILE_KINDS[".tsv"]
    assert file_kind("A.TSV.ZST") is FILE_KINDS[".tsv"]
    assert file_kind("a.json") is None
    content = gzip.compress(b"x\ty\n")
    _, found = read(tmp_path / "A.TSV.GZ", content)
    assert found == [("x", "y")]
    with pytest.raises(ValueError, match="not a whole gzip file"):
        read(tmp_path / "A.TSV.GZ", content[:-9])


def test_dataset_dicts_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"such as data\['train'\]"):
        text_settings(RunFolder(tmp_path), {"train": PAIRS})


@pytest.mark.parametrize("batched", [False, True])
def test_labels_and_endless_data_sets_are_no_text(tmp_path, batched):
    dataset = tf.data.Dataset.from_tensor_slices((["good", "bad"], [1, 0]))
    dataset = dataset.batch(2) if batched else dataset
    with pytest.raises(ValueError, match="pairs of strings.*int32"):
        text_settings(RunFolder(tmp_path), dataset)
    with pytest.raises(ValueError, match="Leave out `repeat`"):
        text_settings(RunFolder(tmp_path), dataset.repeat().prefetch(1))


def test_records_may_have_numbers_as_keys(tmp_path):
    records = [{0: "a cat", 1: "eine Katze"}, {0: "a", 1: "b"}]
    pairs = [("a cat", "eine Katze"), ("a", "b")]
    assert pairs_of(records, tmp_path) == pairs


def test_named_columns_apply_to_objects_and_files(tmp_path):
    pandas = pytest.importorskip("pandas")
    (tmp_path / "dev.csv").write_text("n,x,y\n1,c,d\n")
    frame = pandas.DataFrame({"y": ["b", None], "n": [1, 2], "x": ["a", "e"]})
    columns = ("x", "y")
    run = RunFolder(tmp_path / "run")
    parts = frame, tmp_path / "dev.csv", [("e", "f")]
    settings = text_settings(run, *parts, {"data.columns": columns})
    settings |= {"data.columns": columns, "data.max_skipped": 1}
    datasets, corpus = prepare_text(with_values(RunConfig(), settings), run)
    assert corpus.lines([0]) == ([b"a"], [b"b"])
    assert corpus.skipped == {
        "empty target": {"count": 1, "first_lines": ["train.jsonl:2"]}
    }
    assert (datasets.dev, datasets.test) == ([("c", "d")], [("e", "f")])


NUMBERS = [("998", "nine hundred and ninety eight"), ("7", "seven")]


def test_whole_numbers_are_text(tmp_path):
    pandas = pytest.importorskip("pandas")
    path = tmp_path / "a.jsonl"
    content = b'{"n": 998, "words": "%b"}\n{"n": 7, "words": "seven"}\n'
    note, found = read(path, content % NUMBERS[0][1].encode())
    assert "source = 'n', target = 'words'" in note
    assert found == NUMBERS
    frame = pandas.DataFrame(NUMBERS, columns=["n", "words"])
    frame["n"] = frame["n"].astype(int)
    assert pairs_of(frame, tmp_path / "run") == NUMBERS
    # Each of pandas' missing values becomes an empty sentence.
    missing = pandas.DataFrame({"n": ["7", None, "8"], "words": list("abc")})
    for kind in ("object", "string", "Int64"):
        found = pairs_of(missing.astype({"n": kind}), tmp_path / kind)
        assert found == [("7", "a"), ("", "b"), ("8", "c")]
    with pytest.raises(ValueError, match="cannot be guessed"):
        read(path, b'{"seen": true, "words": "seven"}\n')
    frame["n"] = frame["n"] / 2
    with pytest.raises(ValueError, match="Received: 499.0, of type float, in"):
        text_settings(RunFolder(tmp_path / "run"), frame)


@pytest.mark.parametrize(
    "record, chosen, pair",
    [
        ('{"id": "", "source": 5, "target": "f"}', "source target", ("5", "f")),
        ('{"id": "x", "en": 5, "de": "f"}', "en de", ("5", "f")),
        ('{"src": 5, "tgt": "f", "note": null}', "src tgt", ("5", "f")),
        ('{"id": "x", "en": "a", "de": ["b"]}', "en de", ("a", None)),
        ('{"id": "x", "en": true, "de": "b"}', "en de", (None, "b")),
        # Names do not tell: texts, before integers.
        ('{"id": 7, "fr": "a", "en": "b"}', "fr en", ("a", "b")),
        ('{"n": 7, "words": "b", "all": [1]}', "n words", ("7", "b")),
        ('{"en": "a", "de": "b", "en_text": []}', "en de", ("a", "b")),
    ],
)
def test_fields_are_guessed_by_name_before_type(tmp_path, record, chosen, pair):
    note, found = read(tmp_path / "a.jsonl", record.encode(), skip=True)
    assert re.findall("'(.*?)'", note) == chosen.split()
    assert found[0] == pair


@pytest.mark.parametrize(
    "name, content",
    [
        ("a.csv", b""),
        ("a.csv", b"en,de\n"),
        ("a.csv", b"sep=;\n"),
        ("a.tsv", b""),
        ("a.tsv", b"en\tde\n"),
        ("a.tsv", b"en\tde\n\n"),
        ("a.tsv", b'"en"\t"de"\n'),
    ],
)
def test_files_without_pairs_are_refused(tmp_path, name, content):
    end = " after its first line" if content else ""
    expected = f"no sentence: .*{name} is empty{end}[.]"
    with pytest.raises(ValueError, match=expected):
        read(tmp_path / name, content)


@pytest.mark.parametrize("name, mark", [("a.csv", ","), ("a.tsv", "\t")])
def test_a_possible_header_is_a_pair_unless_named(tmp_path, name, mark):
    text = f"words{mark}digits\none{mark}1\n".encode()
    note, pairs = read(tmp_path / name, text)
    assert "its first line is a pair, 'words' → 'digits'" in note
    assert "--columns words digits" in note and len(pairs) == 2
    _, pairs = read(tmp_path / name, text, ("words", "digits"))
    assert pairs == [("one", "1")]
    note, _ = read(tmp_path / f"same.{name[2:]}", f"ab{mark}ab\n".encode())
    assert "'ab' → 'ab'" in note and "--columns" not in note


def test_several_sources_are_read_as_one_text(tmp_path):
    two_files(".gz", tmp_path)
    for name, rows in (("a.tsv", "a\tb\n"), ("c.csv", "c,d\n")):
        (tmp_path / name).write_text(rows)
    names = [str(tmp_path / n) for n in ("a.tsv", "text", "c.csv")]
    both = tuple(str(tmp_path / f"text.{e}.gz") for e in ("en", "de"))
    for middle in (names[1], both):
        given = [names[0], middle, names[2], [("e", "f"), ("g", "h")]]
        settings = text_settings(RunFolder(tmp_path / "run"), given)
        sources = text_sources(settings["data.train"], RequestedColumns())
        found = list(read_text(sources, False))
        assert [pair.part for pair in found] == [0] + [1] * 300 + [2, 3, 3]
        pairs = [("a", "b"), ("c", "d"), ("e", "f"), ("g", "h")]
        assert [found[0], *found[-3:]] == pairs
        # The settings survive the conversion to JSON and back.
        config = with_values(RunConfig(), settings)
        saved = json.dumps(config_to_dict(config))
        assert config_from_dict(json.loads(saved)) == config


@pytest.mark.parametrize("count", [19, 20, 25])
def test_quotes_of_a_dialogue_are_text(tmp_path, count):
    """Its first lines look like cells in quotes."""
    said = '"Ja."\t"Yes."\n' * count
    later = "a\tb\n" * 9 + '"Ja," sagte er.\t"Yes," he said.\n'
    _, found = read(tmp_path / "a.tsv", (said + later).encode())
    assert len(found) == count + 10
    assert found[0] == ('"Ja."', '"Yes."')
    assert found[-1] == ('"Ja," sagte er.', '"Yes," he said.')
    _, found = read(tmp_path / "b.tsv", said.encode())
    assert found[-1] == ("Ja.", "Yes.")
