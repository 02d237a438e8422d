"""argosy as a backend of the library ``onnx`` (``onnx.backend.base``), as tools and its suite of tests run models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper
from onnx.backend.base import Backend as BaseBackend
from onnx.backend.base import BackendRep, namedtupledict

from argosy_hwadapt.registry import available
from argosy_infer.onnx import Session

__all__ = ["Backend", "PreparedModel", "is_compatible", "prepare", "run_model", "run_node", "supports_device"]


class PreparedModel(BackendRep):  # type: ignore[misc]
    """A model to be run again and again; see :class:`argosy_infer.onnx.Session`."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """The outputs, by position and name, for inputs in order or by name, or a single one."""
        if isinstance(inputs, Mapping):
            found = self.session.run(**inputs)
        else:
            found = self.session.run(*(inputs if isinstance(inputs, (list, tuple)) else [inputs]))
        names = self.session.output_names
        return namedtupledict("Outputs", names)(*found)  # type: ignore[no-any-return]


class Backend(BaseBackend):  # type: ignore[misc]
    """Runs models on argosy's devices: ``"CPU"``, ``"OPENCL"``, ``"VIRTUAL"``, ... and whatever plug-ins add."""

    @classmethod
    def is_compatible(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Whether all operators of a model are implemented, and its device is there."""
        return cls.supports_device(device) and not Session(model).missing()

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> PreparedModel:
        """The model, ready to be run on a device. Raises as :func:`argosy_infer.onnx.load` does, when it is run."""
        return PreparedModel(Session(model, kwargs.get("compiler"), device.lower()))

    @classmethod
    def run_node(
        cls,
        node: NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[tuple[Any, Sequence[int]]] | None = None,
        **kwargs: Any,
    ) -> tuple[Any, ...]:
        """The outputs of a single node, of the newest operator set or of ``opset_version``."""
        super().run_node(node, inputs, device, outputs_info, **kwargs)
        names = [name for name in node.input if name]
        arrays = [np.asarray(x) for x in (inputs.values() if isinstance(inputs, Mapping) else inputs)]
        values = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
            for name, x in zip(names, arrays, strict=True)
        ]
        outputs = [helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None) for name in node.output if name]
        imports = [helper.make_opsetid(node.domain, kwargs["opset_version"])] if "opset_version" in kwargs else None
        model = helper.make_model(helper.make_graph([node], "node", values, outputs), opset_imports=imports)
        return cls.prepare(model, device, **kwargs).run(arrays)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether there is such a device: ``"CPU"``, ``"OPENCL:1"``."""
        name = device.lower().partition(":")[0]
        return name in available() and available()[name] is None


is_compatible = Backend.is_compatible
prepare = Backend.prepare
run_model = Backend.run_model
run_node = Backend.run_node
supports_device = Backend.supports_device
