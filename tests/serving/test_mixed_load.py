"""Sane requests among the worst that are legal and those that are not.

Sixteen clients ask a server that joins their requests; every sane sentence
must have the answer it has alone.
"""

import random
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from luong_keras_client import TranslationClient
from tests.serving.server_process import CHECKOUT, LoopbackProcess
from tests.serving.tiny_translator import SOURCE_WORDS

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not sys.platform.startswith("linux"),
        reason="the double runs the Linux libraries of TensorFlow's package",
    ),
]
SANE, WORST, ILLEGAL, CLIENTS = 1000, 200, 200, 16
ROWS, TOKENS = 32, 9  # of the export of `exported_models`
OPTIONS = {"beam_size": 99, "length_penalty": 2.0, "replace_unknown": 1}
TOO_LONG = {"instances": ["x" * 1_000_000]}
ILLEGAL_BODIES = [
    {"inputs": [["a", "b"]]},  # of rank 2: fails all that it is joined with
    {"inputs": "of rank 0"},
    {"instances": ["a"] * (ROWS + 1)},  # more rows than a batch
    {"instances": [1, 2]},
    TOO_LONG,
    {"signature_name": "sing", "instances": ["a"]},
    {
        "signature_name": "score",
        "inputs": {"source": ["a"], "target": ["x", "y"]},
    },
    {"instances": [{"text": "a", "melody": 1}]},
]


@pytest.fixture(scope="module")
def batching(exported_models):
    running = LoopbackProcess(
        exported_models,
        *("--batching-parameters-file", f"{CHECKOUT}/export/batching.config"),
    )
    yield running
    running.stop()


def test_sane_requests_are_answered_whatever_others_send(batching):
    generator = random.Random(1)
    sentences = [
        " ".join(generator.choices(SOURCE_WORDS, k=generator.randint(1, 8)))
        for _ in range(SANE)
    ]
    url, _, name = batching.rest_url.partition("/v1/models/")
    with TranslationClient(url, name, timeout=300, attempts=8) as client:
        distinct = sorted(set(sentences))
        alone = dict(zip(distinct, client.translate(distinct), strict=True))

        def sane(sentence):
            assert client.translate([sentence]) == [alone[sentence]]
            return "sane"

        def worst(_):
            words = " ".join(generator.choices(SOURCE_WORDS, k=TOKENS))
            row = {"text": words, "rank": 0, "prefix": words, **OPTIONS}
            body = {"signature_name": "align", "instances": [row] * ROWS}
            answer = requests.post(f"{batching.rest_url}:predict", json=body)
            # Joined with one that is not legal, or the queue is full.
            assert answer.status_code in (200, 400, 503), answer.text[:300]
            return "worst"

        def illegal(body):
            answer = requests.post(f"{batching.rest_url}:predict", json=body)
            if body is TOO_LONG and answer.status_code == 200:
                (row,) = answer.json()["predictions"]
                assert row["status"] == "TEXT_TOO_LONG"
            else:
                assert answer.status_code in (400, 503), answer.text[:300]
            return "illegal"

        calls = [(sane, sentence) for sentence in sentences]
        calls += [(worst, None)] * WORST
        calls += [
            (illegal, ILLEGAL_BODIES[i % len(ILLEGAL_BODIES)])
            for i in range(ILLEGAL)
        ]
        generator.shuffle(calls)
        with ThreadPoolExecutor(CLIENTS) as threads:
            kinds = list(threads.map(lambda call: call[0](call[1]), calls))
    assert len(kinds) == SANE + WORST + ILLEGAL
