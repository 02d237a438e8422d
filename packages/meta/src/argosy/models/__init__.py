"""Language models as ordinary ``nn`` code, by family, and the folders that hold them: the face of ``argosy.models``."""

from argosy.faces import face

_MODULES = {
    "configuration": ("ConfigFile", "ConfigurationError", "DecoderConfig"),
    "decoder": ("CausalLM", "Decoder", "SequenceClassifier"),
    "encoder": ("Encoder", "EncoderClassifier", "EncoderConfig", "MaskedLM"),
    "gpt": ("GPT", "GPTConfig"),
    "loading": ("build", "load_model", "save"),
}
_TABLE = {name: f"argosy.models.{module}:{name}" for module, names in _MODULES.items() for name in names}

__getattr__, __dir__ = face(__name__, _TABLE, globals())
