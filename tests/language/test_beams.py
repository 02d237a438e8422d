"""Beam search beside what transformers on torch found with the same models (see ``record_beams.py``), and sequences
that begin alike, whose cache it shares."""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from argosy import models
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


@pytest.mark.parametrize(("base", "cache_dtype"), [("mistral", None), ("deepseek_v3", None), ("llama", "int8")])
def test_forked_sequences_go_on_as_if_they_were_alone(base, cache_dtype, tmp_path):
    """Within a block, at its end, and from an earlier token than the last one; the first one is not changed by it."""
    program, text = program_of(model_of(base, tmp_path)[1]), np.random.default_rng(1).integers(0, 48, 30).tolist()
    generator = Generator(program, capacity=256, block_size=4, cache_dtype=cache_dtype)
    generator.step(text[:14], range(14), [0] * 14)
    generator._next_sequence = 1
    for start in (14, 12, 9):
        child = generator.fork(0)
        made = generator.step(text[20:], range(start, start + 10), [child] * 10)
        whole = text[:start] + text[20:]
        alone = generator.step(whole, range(len(whole)), [9] * len(whole))[-10:]
        np.testing.assert_array_equal(made, alone)
        generator.allocator.release(child)
        generator.allocator.release(9)
    fork = generator.fork(0)
    both = generator.step([text[14], 5], [14, 14], [0, fork])
    np.testing.assert_array_equal(both[:1], generator.step(text[:15], range(15), [9] * 15)[-1:])
    assert not np.array_equal(both[0], both[1])


def test_answers_to_one_prompt_prefill_it_once(tmp_path, monkeypatch):
    """The prompt's tokens are computed once for all of them, where the cache has room for them together; each answer is
    what it is alone."""
    language = models.LanguageModel(model_of("llama", tmp_path)[1])
    prompt, computed = list(range(3, 40)), list[int]()
    alone = [language.generate(prompt, 6, temperature=2.0, seed=seed) for seed in range(4)]
    step = Generator.step

    def count(self, tokens, *rest):
        computed.append(len(tokens))
        return step(self, tokens, *rest)

    monkeypatch.setattr(Generator, "step", count)
    made = language.generate(prompt, 6, temperature=2.0, seed=0, num_return_sequences=4)
    assert made == alone
    assert len({tuple(row) for row in made}) > 1
    assert sum(computed) == len(prompt) + 4 * 5
