"""Beam search beside what transformers on torch found with the same models (see ``record_beams.py``)."""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from argosy.models.importer import program_of
from argosy_infer import Generator, SamplingOptions
from argosy_infer.llm import BeamOptions
from language.test_gguf import model_of

SEARCHES = json.loads((Path(__file__).parent / "beams.json").read_text())["searches"]


@pytest.fixture(scope="module")
def generator_of(tmp_path_factory):
    @cache
    def make(base):
        return Generator(program_of(model_of(base, tmp_path_factory.mktemp(base))[1]), capacity=640, block_size=4)

    return make


@pytest.mark.exhaustive(every=6)
@pytest.mark.parametrize("number", range(len(SEARCHES)))
def test_searches_find_what_transformers_finds(number, generator_of):
    """Tokens and scores, with every setting, over caches of windows and latent channels, too."""
    search = SEARCHES[number]
    settings = dict(search["settings"])
    names = {"num_beams": "count", "length_penalty": "length_penalty", "early_stopping": "early_stopping"}
    beams = BeamOptions(**{own: settings.pop(name) for name, own in names.items() if name in settings})
    count, most = settings.pop("num_return_sequences", 1), settings.pop("max_new_tokens")
    least = settings.pop("min_new_tokens", 0)
    generator = generator_of(search["base"])
    options = SamplingOptions(**settings)
    found = generator.search(search["prompt"], most, beams, options, search["ends"], least)[:count]
    assert [beam.tokens for beam in found] == search["texts"]
    np.testing.assert_allclose([beam.score for beam in found], search["scores"], rtol=1e-4, atol=1e-4)
    assert (generator.allocator.tables, generator.allocator.others) == ({}, {})
