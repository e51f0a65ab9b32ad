"""Requests and results of the client, against values written by hand."""

import json
import time
from contextlib import nullcontext

import numpy as np
import pytest

from luong_keras.inference.search_options import SEARCH_OPTIONS
from luong_keras_client import (
    TranslationClient,
    TranslationServerError,
    TruncationWarning,
)
from tests.client.fake_servers import LIMITS, Refusal, output_row, shout_with
from tests.serving.answered_arrays import (
    ANSWERS,
    MEMORIES,
    SCORED,
    SCORES,
    TEXTS,
    check,
    translations,
)

# In the order of `ANSWERS`; the client sends the shortest first.
LINES = ["door open", "", "ä b c of too many words"]
TARGETS = ["Tür", "", "Ä z"]
BEST = ["Tür auf", "", "Ä <unk> z ."]
OPTIONS = {
    "beam_size": [3, 1, 2],
    "length_penalty": [0.5, None, 1.25],
    "prefix": ["Tür", None, "Ä"],
    "replace_unknown": [True, False, True],
}
# Values of unset options, as the library defines them.
UNSET = {name: option.unset for name, option in SEARCH_OPTIONS.items()}
# Texts and options of the rows, in the order of sending.
SENT = [
    (LINES[1], 1, -1.0, "", 0),
    (LINES[0], 3, 0.5, "Tür", 1),
    (LINES[2], 2, 1.25, "Ä", 1),
]
NAMES = ("text", "beam_size", "length_penalty", "prefix", "replace_unknown")
WITH_OPTIONS = [dict(zip(NAMES, sent, strict=True)) for sent in SENT]
TEXTS_ALONE = [{"text": text} for text, *_ in SENT]
AS_EXPORTED = {name: UNSET[name] for name in (*NAMES[1:], "n_best")}
CUT = "ignore::luong_keras_client.TruncationWarning"
pytestmark = pytest.mark.filterwarnings(CUT)


def answer_by_hand(signature, rows):
    signature = {"search": "translate"}.get(signature, signature)
    answers = ANSWERS[signature.replace("_with_options", "")]
    places = [LINES.index(row.get("text", row.get("source"))) for row in rows]
    return [
        {name: column[place] for name, column in answers.items()}
        for place in places
    ]


@pytest.fixture
def connect(connect, model):
    """Make clients of a server with the answers by hand."""
    model.answer = answer_by_hand
    return connect


def check_request(model, signature, rows):
    """Check that one request was made, of these rows with these types."""
    # As JSON, in which 1, 1.0 and true differ.
    found = json.dumps(model.requests, sort_keys=True)
    assert found == json.dumps([(signature, rows)], sort_keys=True)
    model.requests.clear()


def test_lines_are_translated(connect, model):
    assert connect().translate(LINES) == BEST
    assert connect().translate(iter(LINES), beam_size=None) == BEST
    assert model.requests == [("serving_default", TEXTS_ALONE)] * 2


def test_lines_without_a_translation_are_empty(connect, model):
    absent = {"translations": [""], "scores": [-1e30]}
    model.answer = shout_with(lambda text: {} if "door" in text else absent)
    client, options = connect(), {"required": ["", "Haus", "Haus"]}
    with pytest.warns(TruncationWarning, match="place 1, 2.*any translation"):
        assert client.translate(LINES, **options) == ["DOOR OPEN", "", ""]
    with pytest.warns(TruncationWarning, match="place 1, 2"):
        assert client.nbest(LINES, n_best=1, **options)[1:] == [[], []]


def test_the_score_of_an_absent_rank_is_the_documented_one(connect, model):
    model.answer = lambda *request: [
        one | {"score": -1e30} for one in answer_by_hand(*request)
    ]
    assert [one.score for one in connect().align(LINES, 2)] == [-1e30] * 3


def test_n_best_lists(connect, model):
    check(connect().nbest(LINES), TEXTS)
    check_request(model, "translate", TEXTS_ALONE)


def test_options_may_differ_per_line(connect, model):
    assert connect().translate(LINES, **OPTIONS) == BEST
    rows = [row | {"n_best": 1} for row in WITH_OPTIONS]
    check_request(model, "translate_with_options", rows)
    check(connect().nbest(LINES, n_best=[2, 0, 1], **OPTIONS), TEXTS)
    rows[0]["n_best"], rows[1]["n_best"] = 0, 2
    check_request(model, "translate_with_options", rows)


@pytest.mark.parametrize(
    ("name", "value", "sent"),
    [
        ("beam_size", 4, 4),
        ("n_best", np.int64(2), 2),
        ("length_penalty", 1, 1.0),
        ("length_penalty", 0.0, 0.0),
        ("replace_unknown", True, 1),
        ("replace_unknown", False, 0),
        ("replace_unknown", -1, -1),
        ("coverage_penalty", 0.25, 0.25),
        ("no_repeat_ngram", 3, 3),
        ("temperature", 1, 1.0),
        ("top_k", 10, 10),
        ("top_p", 0.5, 0.5),
        ("seed", 7, 7),
        ("required", "Haus\trot", "Haus\trot"),
        *((name, "das", "das") for name in ("prefix", "forbidden")),
    ],
)
def test_options_are_sent_with_their_types(connect, model, name, value, sent):
    connect().nbest(LINES[:1], **{name: value})
    if name in AS_EXPORTED:
        row = {"text": LINES[0], **AS_EXPORTED, name: sent}
        check_request(model, "translate_with_options", [row])
        return
    row = {"text": LINES[0], **UNSET, name: sent}
    check_request(model, "search", [row])
    connect().translate(LINES[:1], beam_size=3, **{name: value})
    check_request(model, "search", [row | {"beam_size": 3, "n_best": 1}])
    with pytest.raises(TypeError, match=f"Received: {name}"):
        connect().align(LINES[:1], **{name: value})


@pytest.mark.parametrize("step", ["produces", "reads"])
def test_alignments(connect, model, step):
    with pytest.warns(TruncationWarning, match="place 2"):
        found = connect(alignment_step=step).align(LINES, **OPTIONS)
    check(found, [nbest[0] for nbest in translations(step)])
    check_request(model, "align", [row | {"rank": 0} for row in WITH_OPTIONS])


def test_alignments_of_another_rank(connect, model):
    connect().align(LINES[:1], 2, beam_size=4)
    row = {"text": LINES[0], **AS_EXPORTED, "beam_size": 4, "rank": 2}
    del row["n_best"]
    check_request(model, "align", [row])
    # A server would choose the nearest values.
    for options, message in [
        *(({"rank": ranks}, "`rank` from 0 to 2") for ranks in (3, [0, 99])),
        ({"rank": -1}, "`rank` as .* of type int32 from 0 to"),
        ({"n_best": 4}, "`n_best` from 0 to 3"),
        ({"beam_size": 11}, "`beam_size` from 0 to 10"),
        ({"length_penalty": 2.5}, "float32 from 0 to 2. Received: 2.5"),
        *(({"top_p": [0.5, x]}, "float32 from 0 to 1") for x in (1.5, 0)),
        ({"temperature": -0.5}, "float32 from 0 to 10"),
        (
            {"required": ["Haus", ""], "temperature": [0.5, 0]},
            "in a beam search; samples have none",
        ),
    ]:
        method = connect().align if "rank" in options else connect().nbest
        with pytest.raises(ValueError, match=message):
            method(LINES[:2], **options)


@pytest.mark.parametrize("sources", [[], ["door"]])
@pytest.mark.parametrize("served", ["rest"], indirect=True)
def test_empty_alignments_and_memories(connect, model, sources):
    """JSON loses the axes that follow an axis of size 0."""
    row = output_row(translation="", score=0.0, tokens=[], lengths=0)
    row |= {"alignments": [], "source_tokens": sources, "memory": []}
    row |= {"source_lengths": len(sources)}
    model.answer = lambda signature, rows: [row] * len(rows)
    for found in connect().align(["", " "]):
        assert (found.tokens, found.source_tokens) == ([], sources)
        assert found.alignments.shape == (0, len(sources))
        assert found.links == []
    for memory in connect().encode(["", " "]):
        assert memory.ndim == 2 and len(memory) == 0


def test_given_translations_are_scored(connect, model):
    check(connect().score(LINES, TARGETS), SCORES)
    pairs = [("", ""), (LINES[0], TARGETS[0]), (LINES[2], TARGETS[2])]
    rows = [{"source": one, "target": other} for one, other in pairs]
    check_request(model, "score", rows)
    check(connect().align_pairs(LINES, TARGETS), SCORED)
    check_request(model, "align_pair", rows)


@pytest.mark.parametrize("method", ["align", "score", "align_pairs"])
def test_results_are_compared_without_their_arrays(connect, method):
    arguments = [LINES, TARGETS][: 1 if method == "align" else 2]
    found, same = (getattr(connect(), method)(*arguments) for _ in range(2))
    assert found == same and found[0] not in same[1:]
    assert len({*found, *same}) == 3


def test_lines_are_encoded(connect):
    for one, other in zip(connect().encode(LINES), MEMORIES, strict=True):
        other = other.astype("float32")
        np.testing.assert_array_equal(one, other, strict=True)


def test_contract_is_requested_once_a_minute(connect, model, monkeypatch):
    client, now = connect(), time.monotonic()
    assert model.contract_calls == 0
    client.translate(LINES)
    assert vars(client.contract()).items() >= LIMITS.items()
    client.translate(LINES)
    assert model.contract_calls == 1
    model.limits["n_best"] = 2  # as of another version
    monkeypatch.setattr(time, "monotonic", lambda: now + 62)
    with pytest.raises(ValueError, match="`n_best` from 0 to 2"):
        client.nbest(LINES, n_best=3)
    assert client.contract().n_best == 2 and model.contract_calls == 3


def test_a_contract_is_requested_again_after_an_error(connect, model):
    client = connect(attempts=1)
    client.translate(LINES)
    model.steps.append(Refusal("INVALID_ARGUMENT", "no such output"))
    with pytest.raises(TranslationServerError, match="no such output"):
        client.translate(LINES)
    model.limits["max_rows"] = 63
    client.translate(LINES)
    assert client.contract().max_rows == 63 and model.contract_calls == 2
    # The limits of the next version may be larger.
    with pytest.raises(ValueError, match="`n_best` from 0 to 3"):
        client.nbest(LINES, n_best=4)
    model.limits["n_best"] = 4
    client.nbest(LINES, n_best=4)
    client.translate(LINES[:1], required=b"", temperature=0.5)


def test_a_beam_of_fewer_than_n_best_is_refused(connect, model):
    """A server without a stack of its own would return fewer."""
    options = {"n_best": 3, "beam_size": [3, 0, 2]}
    connect().nbest(LINES, **options)
    model.limits["n_best"] = model.limits["max_beam_size"]
    client = connect()
    expected = "`n_best` from 0 to 2, as many as the search keeps. Received: 3."
    with pytest.raises(ValueError, match=expected):
        client.nbest(LINES, **options)
    client.nbest(LINES, **options, temperature=0.5)  # Samples have no beam.
    model.limits |= {"beam_size": 2, "stack_size": 0, "samples": 0}
    client, other = connect(), connect()
    with pytest.raises(ValueError, match="`n_best` from 0 to 2"):
        client.nbest(LINES, n_best=3)
    with pytest.raises(ValueError, match="`rank` from 0 to 1"):
        client.align(LINES, 2)
    model.limits["stack_size"] = 3
    other.nbest(LINES, **options)
    # An export that samples draws as many for `align` as its beam has.
    model.limits |= {"stack_size": 0, "samples": 1}
    client = connect()
    with pytest.raises(ValueError, match="`rank` from 0 to 1"):
        client.align(LINES, 2)
    client.nbest(LINES, n_best=3)


@pytest.mark.parametrize("samples", [0, 1, -1])
def test_options_that_the_search_would_ignore_are_refused(
    connect, model, samples
):
    model.limits |= {"beam_size": 5, "stack_size": 0, "samples": samples}
    client = connect()
    client.translate(LINES, required="Haus", temperature=0.0)
    client.translate(LINES, seed=7, temperature=[0.0, 0.0, 0.5])
    for options, refused, message in (
        ({"seed": 7, "top_p": 0.5}, 0, "a `temperature` .* seed, top_p in a"),
        ({"required": "Haus"}, 1, "samples have none"),
    ):
        is_refused = pytest.raises(ValueError, match=message)
        with is_refused if samples == refused else nullcontext():
            client.translate(LINES, **options)


def test_lines_of_similar_length_share_a_request(connect, model, served):
    client = connect(batch_size=2, concurrency=1)
    check(client.align(LINES), [x[0] for x in translations("produces")])
    assert model.texts == [["", LINES[0]], [LINES[2]]]
    if served.url.startswith("http"):
        assert served.connections == 1


def test_requests_have_at_most_max_rows_of_the_contract(connect, model):
    model.limits["max_rows"] = 2
    connect(batch_size=3).translate(LINES)
    assert sorted(map(len, model.texts)) == [1, 2]


def test_empty_lists_send_no_request(connect, model):
    client = connect()
    assert client.translate([]) == client.nbest([]) == client.align([]) == []
    assert client.score([], []) == client.encode([]) == []
    assert model.metadata == []


@pytest.mark.parametrize("served", ["grpc"], indirect=True)
def test_grpc_requests_name_their_outputs(connect, model):
    for method in ("translate", "nbest", "align", "encode"):
        getattr(connect(), method)(LINES)
    filters = [set(names) for names in model.filters[1::2]]
    names = ("serving_default", "translate", "align", "encode")
    # All outputs of the signature, so that other requests can share a batch.
    assert filters == [set(ANSWERS[name]) for name in names]


def test_json_body_of_invalid_unicode_and_of_bytes(rest):
    with TranslationClient(rest.url, "demo") as client:
        client.translate(["\ud800x", b"caf\xc3\xa9"])
    path, body = rest.bodies[-1]
    assert path == "/v1/models/demo:predict"
    assert json.loads(body) == {
        "signature_name": "serving_default",
        "instances": [{"text": "\ufffdx"}, {"text": {"b64": "Y2Fmw6k="}}],
    }


@pytest.mark.parametrize(
    ("settings", "path"),
    [
        ({}, "a%20b"),
        ({"version": 7}, "a%20b/versions/7"),
        ({"version": np.int64(0)}, "a%20b/versions/0"),
        ({"label": "x/y"}, "a%20b/labels/x%2Fy"),
    ],
)
def test_requests_name_the_version_or_the_label(model, served, settings, path):
    with TranslationClient(served.url, "a b", **settings) as client:
        assert client.status() == {3: "AVAILABLE", 12: "UNLOADING"}
        client.translate(["x"])
    if served.url.startswith("http"):
        paths = [path for path, _ in served.bodies]
        url = f"/v1/models/{path}"
        assert paths == [url, f"{url}:predict", f"{url}:predict"]
        return
    for spec in served.specs:
        assert spec.name == "a b"
        assert spec.version.value == settings.get("version", 0)
        assert spec.HasField("version") == ("version" in settings)
        assert spec.version_label == settings.get("label", "")
