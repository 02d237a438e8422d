"""An optimizer's states in one buffer, which Paddle builds for GPUs: its names, as they are where no buffer is used."""

from __future__ import annotations

from typing import Any

__all__ = ["FusedStorage"]


class FusedStorage:
    """What :class:`Optimizer` answers about fused storage: there is none."""

    merged_model_params: dict[str, Any] | None = None

    def set_merged_model_params(self, merged_model_params: dict[str, Any] | None) -> None:
        """Keep the merged parameters that a fused buffer would hold. Raises TypeError for other than a dict or None."""
        if merged_model_params is not None and not isinstance(merged_model_params, dict):
            raise TypeError(
                f"set_merged_model_params: a dict or None is wanted, got {type(merged_model_params).__name__}"
            )
        self.merged_model_params = merged_model_params

    def use_fusion_storage(self) -> None:
        """Raises NotImplementedError: every state has memory of its own."""
        raise NotImplementedError(
            f"{type(self).__name__}.use_fusion_storage: states in one buffer are not implemented; every state has "
            "memory of its own, and a captured step updates all of them in few kernels"
        )

    def need_refuse(self) -> None:
        """Ask for the buffer to be built anew: nothing to do without one."""

    def reset_need_refuse(self) -> None:
        """Take the request back: nothing to do."""

    @property
    def fused_buffer_version(self) -> int:
        """How often the buffer was built: 0."""
        return 0

    @property
    def fused_states_buffer(self) -> None:
        """The buffer: None."""
        return None

    @property
    def fused_states_buffer_ipc_meta(self) -> None:
        """What another process needs to open the buffer: None."""
        return None

    @property
    def fused_states_accumulators_meta(self) -> None:
        """Where accumulators lie in the buffer: None."""
        return None

    @property
    def fused_states_master_weights_meta(self) -> None:
        """Where master weights lie in the buffer: None."""
        return None
