"""Written by ``python -m argosy.api.stubs``."""

from argosy.models.decoder import CausalLM as CausalLM
from argosy.models.configuration import ConfigFile as ConfigFile
from argosy.models.configuration import ConfigurationError as ConfigurationError
from argosy.models.decoder import Decoder as Decoder
from argosy.models.configuration import DecoderConfig as DecoderConfig
from argosy.models.encoder import Encoder as Encoder
from argosy.models.encoder import EncoderClassifier as EncoderClassifier
from argosy.models.encoder import EncoderConfig as EncoderConfig
from argosy.models.encoder import EncoderTokenClassifier as EncoderTokenClassifier
from argosy.models.gpt import GPT as GPT
from argosy.models.gpt import GPTConfig as GPTConfig
from argosy.models.language_model import LanguageModel as LanguageModel
from argosy.models.encoder import MaskedLM as MaskedLM
from argosy.models.classifiers import SequenceClassifier as SequenceClassifier
from argosy.models.classifiers import TokenClassifier as TokenClassifier
from argosy.models.loading import build as build
from argosy.models.distillation import distillation_step as distillation_step
from argosy.models.importer import export as export
from argosy.models.distillation import hidden_loss as hidden_loss
from argosy.models.language_model import load as load
from argosy.models.loading import load_model as load_model
from argosy.models.distillation import logits_loss as logits_loss
from argosy.models.importer import programs_of_predictions as programs_of_predictions
from argosy.models.pruning import prune as prune
from argosy.models.loading import save as save
from argosy.models.quantized_layouts import use_integers as use_integers
