"""Tokenizers, chat templates and generation settings of folders, good ones and bad ones."""

import json
import random

import pytest

from argosy_infer import SamplingOptions
from argosy_infer.llm import (
    BeamOptions,
    ChatError,
    ChatTemplate,
    GenerationSettings,
    SettingsError,
    Tokenizer,
    TokenizerError,
)

tokenizers = pytest.importorskip("tokenizers")

TEXTS = ["The quick brown fox", "naïve café, 東京 and 🚀🚀", "tabs\tand\nlines", "", " leading and trailing "]
TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}<{{ m['role'] }}>{{ m['content'] | trim }}{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A byte-level BPE of few merges, so that letters are split into tokens that are no text alone."""
    made = tmp_path_factory.mktemp("tokenizer")
    library = tokenizers.Tokenizer(tokenizers.models.BPE())
    library.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    library.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=300, special_tokens=["<s>", "</s>"], initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet()
    )
    library.train_from_iterator(["the quick brown fox and the lazy dog"] * 3, trainer)
    library.save(str(made / "tokenizer.json"))
    config = {"bos_token": "<s>", "eos_token": {"content": "</s>"}, "chat_template": TEMPLATE}
    (made / "tokenizer_config.json").write_text(json.dumps(config))
    return made


def test_ids_and_texts_are_the_library_s(folder):
    tokenizer, library = Tokenizer.read(folder), tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    for text in TEXTS:
        assert tokenizer.encode(text) == library.encode(text).ids
        assert tokenizer.decode(tokenizer.encode(text)) == text
    assert len(tokenizer) == library.get_vocab_size()
    assert tokenizer.id_of("eos_token") == library.token_to_id("</s>")
    assert tokenizer.id_of("pad_token") is None


def test_texts_side_by_side_are_padded_behind(folder):
    tokenizer = Tokenizer.read(folder)
    ids, real = tokenizer.encode_batch(["fox", "the lazy dog", ""], limit=6)
    assert ids.shape == real.shape
    for text, row, mask in zip(["fox", "the lazy dog", ""], ids, real, strict=True):
        assert row[mask].tolist() == tokenizer.encode(text)[:6]
        assert not row[~mask].any()


def test_a_text_that_grows_is_the_text_of_its_tokens(folder):
    """Any tokens, also those that make no letters: what came out never changes, and nothing is left out."""
    tokenizer, draw = Tokenizer.read(folder), random.Random(3)
    rows = [tokenizer.encode(text) for text in TEXTS] + [
        [draw.randrange(len(tokenizer)) for _ in range(40)] for _ in range(60)
    ]
    for ids in rows:
        stream = tokenizer.stream()
        pieces = [stream.add(token) for token in ids] + [stream.finish()]
        assert "".join(pieces) == tokenizer.decode(ids)


def test_letters_wait_for_their_last_byte(folder):
    tokenizer = Tokenizer.read(folder)
    stream, ids = tokenizer.stream(), tokenizer.encode("🚀!")
    assert [stream.add(token) for token in ids] == ["", "", "", "🚀", "!"]


def test_a_text_ends_before_the_first_of_several(folder):
    """However long the text that ends it, and over how many tokens it comes; what only begins it is given out."""
    tokenizer = Tokenizer.read(folder)
    for text, stop, expected in (
        ("hello world!", ("o w", "ld"), "hell"), ("hello!!", ("o!x", "zz"), "hello!!"), ("aab", ("ab",), "a"),
        ("hello", ("hello",), ""),
    ):  # fmt: skip
        stream = tokenizer.stream(stop)
        made = [stream.add(token) for token in tokenizer.encode(text, special=False)]
        assert "".join([*made, stream.finish()]) == expected
        assert stream.ended == (expected != text)
    with pytest.raises(ValueError, match="one letter at least"):
        tokenizer.stream([""])


def test_chats_are_what_jinja2_renders(folder):
    tokenizer = Tokenizer.read(folder)
    messages = [{"role": "user", "content": " hello "}, {"role": "assistant", "content": "hi"}]
    assert tokenizer.template.render(messages) == "<s><user>hello<assistant>hi<assistant>"
    assert tokenizer.template.render(messages, answer=False) == "<s><user>hello<assistant>hi"
    assert tokenizer.chat(messages) == tokenizer.encode("<s><user>hello<assistant>hi<assistant>", special=False)


MARKS = """{{- bos_token }}{% set first = messages[0] %}{% for m in messages[1:] %}{% if loop.index0 % 2 == 0 %}
{{ '<|' ~ m.role ~ loop.index ~ '|>' + m['content'] | trim }}{% else %}
{% generation %}{{ m.content.split('x')[-1].strip() }}{% endgeneration %}{% endif %}{% endfor %}
{% for name, tool in tools.items() %}{{ name ~ ' ' ~ tool | tojson(indent=2) }}{% endfor %}
{{ messages | map(attribute='role') | unique | join(', ') | upper }} {{ '%d of %s' % (2, 'x') }} {{ none }}
{{ 3 * 'ab' | length }} {{ '{}-{:.2f}'.format(1, 2.0) }} {{ 'a\n b' | indent(2) }} {{ 1 ~ 2.5 ~ none }}
{{ first.content.replace('h', 'H') }} {{ first.nothing | default('-') }} {{ messages[::-1][0].role }}"""


def test_templates_say_what_jinja2_says():
    """Concatenation, slices, filters, formats, tools and what training marks."""
    messages = [{"role": r, "content": c} for r, c in (("system", "hi"), ("user", " a "), ("assistant", "yxz "))]
    tools = {"f": {"a": [1, "é"]}}
    environment = pytest.importorskip("jinja2").Environment(trim_blocks=True, lstrip_blocks=True)
    environment.filters["tojson"] = lambda x, indent=None: json.dumps(x, ensure_ascii=False, indent=indent)
    plain = MARKS.replace("{% generation %}", "").replace("{% endgeneration %}", "")
    expected = environment.from_string(plain).render(messages=messages, tools=tools, bos_token="<s>")
    assert ChatTemplate(MARKS, {"bos_token": "<s>"}).render(messages, tools=tools) == expected


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("{% for %}", "is no template"),
        ("{{ raise_exception('roles must alternate') }}", "roles must alternate"),
        ("{{ messages.__class__.__mro__ }}", "unsafe|undefined"),
        ("{{ ''.__class__ }}{{ cycler.__init__.__globals__.os.popen('id') }}", "unsafe|undefined|has no"),
        ("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}", "more than"),
        ("{% for a in messages * 1000000 %}{% endfor %}", "small numbers"),
        ("{{ 'x' * 10 ** 9 }}", "small numbers"),
        ("{% macro f(n) %}{{ f(n) }}{% endmacro %}{{ f(1) }}", "recursion"),
        ("{{ messages[0].nothing.further }}", "has no attribute|undefined"),
        ("{{ 1 / 0 }}", "zero"),
        ("x" * (1 << 21), "characters"),
        ("{% set n = namespace(x='a') %}{% for i in range(60) %}{% set n.x = n.x + n.x %}{% endfor %}", "at most"),
        ("{% set n = namespace(x='a') %}{% for i in range(60) %}{% set n.x = n.x ~ n.x %}{% endfor %}", "at most"),
        ("{% set n = namespace(x=['a']) %}{% for i in range(60) %}{% set n.x = n.x + n.x %}{% endfor %}", "at most"),
        (
            "{% set n = namespace(x=1) %}{% for i in range(60) %}{% set n.x = [n.x, n.x] %}{% endfor %}{{ n.x }}",
            "at most|more than",
        ),
        (
            "{% set n = namespace(x=1) %}{% for i in range(60) %}{% set n.x = [n.x, n.x] %}{% endfor %}"
            "{{ n.x | tojson }}",
            "at most|more than",
        ),
        ("{% set x = 'a'.ljust(99999) %}{% for i in range(999) %}{{ x }}{% endfor %}", "at most"),
        (
            "{% macro f() %}{% for i in range(99999) %}{{ 'a'.ljust(999) }}{% endfor %}{% endmacro %}{{ f() }}",
            "at most|more than",
        ),
        ("{% set x = 'a'.ljust(9999) %}{{ x.replace(' ', x) }}", "at most"),
        ("{% set x = 'a'.ljust(9999) %}{{ x | replace(' ', x) }}", "at most"),
        ("{{ ('a'.ljust(9999) | list) | join('a'.ljust(9999)) }}", "at most"),
        ("{{ 'a'.ljust(9999).join('a'.ljust(9999)) }}", "at most"),
        ("{{ '%999999999d' % 1 }}", "widths"),
        ("{{ '{:>999999999}'.format(1) }}", "widths"),
        ("{{ '{:>{}}'.format(1, 999999999) }}", "widths|numbers below"),
        ("{{ 'x'.zfill(99999999) }}", "numbers below"),
        ("{{ 'a' | indent(99999999, true) }}", "at most"),
        ("{{ messages | tojson(indent=999999) }}", "0 to 64"),
        ("{{ 'a' | center(999999999) }}", "No filter"),
        ("{{ strftime_now('%Y'.ljust(9999)) }}", "letters"),
    ],
)
def test_templates_that_are_wrong_end_in_an_error(source, message):
    with pytest.raises(ChatError, match=message):
        ChatTemplate(source, {}).render([{"role": "user", "content": "x"}])


@pytest.mark.parametrize("messages", [["hello"], [{"content": "x"}], [{"role": 1}]])
def test_messages_that_are_none_are_refused(messages):
    with pytest.raises(ChatError, match="expected a table with role"):
        ChatTemplate(TEMPLATE, {"bos_token": ""}).render(messages)


@pytest.mark.parametrize("damage", ["{", "[]", '{"model": {"type": "BPE"}}', "null", '{"added_tokens": [' * 50])
def test_damaged_tokenizers_are_refused_by_file(tmp_path, damage):
    (tmp_path / "tokenizer.json").write_text(damage)
    with pytest.raises(TokenizerError, match=r"tokenizer\.json"):
        Tokenizer.read(tmp_path)


def test_a_folder_without_a_tokenizer_says_so(tmp_path):
    with pytest.raises(TokenizerError, match="does not exist"):
        Tokenizer.read(tmp_path)


def test_settings_are_those_of_the_file(tmp_path):
    assert GenerationSettings.read(tmp_path).sampling.temperature == 0
    (tmp_path / "config.json").write_text(json.dumps({"eos_token_id": 7}))
    assert GenerationSettings.read(tmp_path).stop == (7,)
    given = {"do_sample": True, "temperature": 0.6, "top_p": 0.95, "eos_token_id": [1, 2], "num_beams": 4}
    (tmp_path / "generation_config.json").write_text(json.dumps(given))
    read = GenerationSettings.read(tmp_path)
    assert (read.sampling.temperature, read.sampling.top_k, read.sampling.top_p) == (0.6, 50, 0.95)
    assert (read.stop, read.missing) == ((1, 2), ("num_beams beside do_sample",))
    given = {"num_beams": 4, "length_penalty": 0.5, "early_stopping": "never"}
    (tmp_path / "generation_config.json").write_text(json.dumps(given))
    read = GenerationSettings.read(tmp_path)
    assert (read.beams, read.missing) == (BeamOptions(4, 0.5, "never"), ())
    (tmp_path / "generation_config.json").write_bytes(read.files()["generation_config.json"])
    assert GenerationSettings.read(tmp_path) == read


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "no JSON"),
        ("[1]", "expected a JSON object"),
        ('{"eos_token_id": "x"}', "eos_token_id"),
        ('{"do_sample": true, "temperature": "hot"}', "'temperature' should be a number"),
        ('{"do_sample": true, "top_p": 3}', "top_p must be"),
    ],
)
def test_settings_that_are_wrong_are_refused(tmp_path, text, message):
    (tmp_path / "generation_config.json").write_text(text)
    with pytest.raises(SettingsError, match=message):
        GenerationSettings.read(tmp_path)


def test_penalties_and_cutoffs_of_the_file_are_taken(tmp_path):
    given = {
        "repetition_penalty": 1.1,
        "min_p": 0.2,
        "bad_words_ids": [[4, 5]],
        "suppress_tokens": [3],
        "min_new_tokens": 2,
    }
    (tmp_path / "generation_config.json").write_text(json.dumps(given))
    read = GenerationSettings.read(tmp_path)
    assert (read.missing, read.min_new_tokens) == ((), 2)
    assert read.sampling == SamplingOptions(repetition_penalty=1.1, bad_words=((4, 5),), suppressed=(3,))
    (tmp_path / "generation_config.json").write_text(json.dumps(given | {"do_sample": True}))
    assert GenerationSettings.read(tmp_path).sampling.min_p == 0.2


@pytest.mark.parametrize(
    "wrong",
    [{"bad_words_ids": [[]]}, {"bad_words_ids": 3}, {"suppress_tokens": ["a"]}, {"min_p": 3, "do_sample": True}],
)
def test_settings_that_are_no_tokens_are_refused(tmp_path, wrong):
    (tmp_path / "generation_config.json").write_text(json.dumps(wrong))
    with pytest.raises(SettingsError, match=next(iter(wrong))):
        GenerationSettings.read(tmp_path)
