"""Examples of beam search over user-defined models, briefly trained."""

import importlib
import re

import pytest

from tests.programs import run_program

PROGRAMS = {
    "beam_search_functional": ("greedy", "beam 5"),
    "beam_search_transformer": ("beam 1", "beam 5"),
}


def compared_searches(printed):
    return tuple(re.findall(r"^(.+): [\d.]+% right", printed, re.MULTILINE))


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_example_compares_its_searches(name, capsys):
    importlib.import_module(name).main(count=100, epochs=1, tested=4)
    assert compared_searches(capsys.readouterr().out) == PROGRAMS[name]


@pytest.mark.slow
def test_only_new_numbers_are_tested(monkeypatch):
    module = importlib.import_module("beam_search_functional")
    encoder, read = module.encoder, []
    monkeypatch.setattr(module, "LONGEST", 3)
    monkeypatch.setattr(
        module, "encoder", lambda source: read.append(source) or encoder(source)
    )
    module.main(count=900, epochs=1, tested=100)
    known = {*map(bytes, module.make_data(900, seed=1)[0])}
    assert len(read[0]) > 20 and not known & {*map(bytes, read[0])}


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("jax") is None, reason="JAX is not installed"
)
@pytest.mark.parametrize("name", PROGRAMS)
def test_example_runs_without_tensorflow(name):
    program = f"import {name}\n{name}.main(count=100, epochs=1, tested=4)"
    printed = run_program(program, "tensorflow", KERAS_BACKEND="jax")
    assert compared_searches(printed) == PROGRAMS[name]
