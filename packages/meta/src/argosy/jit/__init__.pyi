"""Written by ``python -m argosy.api.stubs``."""

from argosy.jit.input_spec import InputSpec as InputSpec
from argosy.jit.static_function import StaticFunction as StaticFunction
from argosy.jit.translated import TranslatedLayer as TranslatedLayer
from argosy.jit.reporting import clear_report as clear_report
from argosy.jit.counting import count_compiles as count_compiles
from argosy.jit.decorate import enable_to_static as enable_to_static
from argosy.jit.decorate import ignore_module as ignore_module
from argosy.jit.translated import load as load
from argosy.jit import marker as marker
from argosy.jit.decorate import not_to_static as not_to_static
from argosy.jit.reporting import report as report
from argosy.jit.export import save as save
from argosy.jit.reporting import set_code_level as set_code_level
from argosy.jit.reporting import set_verbosity as set_verbosity
from argosy.jit.decorate import to_static as to_static
