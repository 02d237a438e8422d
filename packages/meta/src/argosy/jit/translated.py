"""Exported programs as layers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Self

from argosy.jit.paddle_format.program import load_paddle_program
from argosy.jit.replay import check_replayable, replay
from argosy.nn.layer import Layer
from argosy_infer.export import load_program
from argosy_infer.predictor import Predictor
from argosy_tensorcore.interchange import to_numpy
from argosy_tensorcore.storage import Strided
from argosy_tensorcore.tensor import Tensor

__all__ = ["TranslatedLayer", "load"]


class TranslatedLayer(Layer):
    """A layer whose forward runs an exported program. Its weights have the names they were exported with: parameters
    where they were trained, else buffers.

    In evaluation mode, in which it comes, the program is compiled, and no gradients flow. In training mode it runs
    operator by operator; what it does is that of evaluation (it was exported so): nothing is dropped, and statistics
    stay. ``jit.load`` makes it: of ``programs``, predictors by the name of the method, and ``persistable_vars``, the
    states that they share.
    """

    def __init__(self, programs: Mapping[str, Predictor], persistable_vars: Mapping[str, Strided]) -> None:
        super().__init__()
        self.__dict__["_programs"] = dict(programs)
        self.__dict__["training"] = False
        trained = {s.name for p in programs.values() for s in p.program.states if s.attributes.get("trainable")}
        for name, payload in persistable_vars.items():
            tensor = Tensor._wrap(payload, name not in trained)
            tensor.name, tensor.persistable, tensor.is_parameter = name, True, name in trained
            (self._parameters if name in trained else self._buffers)[name] = tensor

    def forward(self, *inputs: Any) -> Any:
        """The program's outputs: one tensor, or a list of them. Raises InputError for inputs that do not fit."""
        if self.training:
            check_replayable(self._programs["forward"].program)
            tensors = [x if type(x) is Tensor else Tensor(x) for x in inputs]
            results = replay(self._programs["forward"].program, tensors, {**self._parameters, **self._buffers})
            return results[0] if len(results) == 1 else results
        arrays = [to_numpy(x) if type(x) is Tensor else x for x in inputs]
        outputs = [Tensor._wrap(Strided.from_array(a)) for a in self._programs["forward"].run(*arrays)]
        return outputs[0] if len(outputs) == 1 else outputs

    def program(self, method_name: str = "forward") -> Any:
        """The program of a method. Raises ValueError for one that was not exported."""
        if method_name not in self._programs:
            raise ValueError(f"program: no method {method_name!r} was exported; there are {sorted(self._programs)}")
        return self._programs[method_name].program

    def train(self, mode: bool = True) -> Self:
        """Training mode, or evaluation. Raises NotImplementedError for training a program with loops or branches."""
        if mode:
            check_replayable(self._programs["forward"].program)
        self.__dict__["training"] = mode
        return self

    def eval(self) -> Self:
        """Evaluation mode: the program runs compiled."""
        return self.train(False)


def load(path: str | os.PathLike[str], **configs: Any) -> TranslatedLayer:
    """The layer of what :func:`argosy.jit.save` wrote to ``path``, or Paddle 3 (``.json`` and ``.pdiparams``).

    Raises ProgramFileError naming the file that is missing, damaged, or of another export, NotImplementedError naming
    an operator of Paddle's that is not known here.
    """
    if configs:
        raise NotImplementedError(f"jit.load() has no option {sorted(configs)}")
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"jit.load(): argument 'path' must be a path, got {path!r:.60}")
    base = os.fspath(path)
    if os.path.exists(base + ".json") and not os.path.exists(base + ".pir"):
        predictor = Predictor(load_paddle_program(base))
    else:
        predictor = Predictor(load_program(path))
    return TranslatedLayer({"forward": predictor}, predictor.states)
