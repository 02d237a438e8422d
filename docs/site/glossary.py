"""Parameters that mean the same wherever they stand: the reference says so where a docstring does not name them."""

from __future__ import annotations

import re

_LAYERS = r"argosy\.(compat\.|sparse\.)?nn\."
MEANINGS: tuple[tuple[str, str, str], ...] = (
    ("name", "", "a name, as Paddle takes one; the result is the same"),
    ("out", "", "a tensor that the result is written to"),
    ("x input", "", "a tensor"),
    ("y other", r"argosy\.\w+$", "the second operand"),
    ("dtype", "", "the dtype of what is made; None is the default"),
    ("shape", r"argosy\.\w+$", "the sizes of what is made"),
    ("device place", r"argosy\.\w+$", "where what is made shall live; None is the current device"),
    ("requires_grad", "", "whether what is made wants gradients"),
    ("stop_gradient", "", "whether what is made wants no gradients"),
    ("pin_memory", "", "taken as Paddle takes it, and of no effect on a CPU"),
    ("axis dim", "", "the axis, or the axes; negative ones count from the last"),
    ("keepdim", "", "whether reduced axes stay, with size 1"),
    ("data_format", "", "where the channels are: NC... behind the batch, N...C last"),
    ("kernel_size kernel_sizes filter_size", "", "the window: one size for all axes, or one for each"),
    ("stride strides", r".*(nn\.|pool|conv)", "the steps of the window: one for all axes, or one for each"),
    ("padding", r".*(nn\.|pool|conv)", "what is added around: a number, one for each axis or each side, SAME or VALID"),
    ("padding_mode", _LAYERS, "what is added around: zeros, reflect, replicate or circular"),
    ("dilation dilations", r".*(nn\.|conv)", "the distance of a window's elements, from 1 on"),
    ("output_padding", "", "what is added at the end of each axis of the result"),
    ("groups", r".*(nn\.|conv)", "into how many groups channels are divided, each with weights of its own"),
    ("ceil_mode", "", "whether a window that is cut off at the end counts"),
    ("return_mask", "", "whether the places of the largest elements are returned, too"),
    ("divisor_override", "", "what sums are divided by; None is the size of the window"),
    ("in_channels", "", "the channels of what comes in"),
    ("out_channels", "", "the channels of the result"),
    ("num_features", "", "the number of channels"),
    ("input_size", _LAYERS, "the features of what comes in"),
    ("hidden_size", _LAYERS, "the features of the state"),
    ("dim_feedforward", "", "the width of the hidden layer of each perceptron"),
    (
        "weight_attr bias_attr param_attr weight_ih_attr weight_hh_attr bias_ih_attr bias_hh_attr", "",
        "how the parameter is made: a ParamAttr, an initializer, a name; None is the default, False is none",
    ),
    ("reduction", "", "mean or sum of all elements, or none: each of them"),
    ("weight", r".*Loss$", "what each class counts; None: all alike"),
    ("label", r".*(loss|cost|entropy)", "what the result should have been"),
    ("epsilon eps", "", "a small number that keeps divisors from 0"),
    ("momentum", r".*(Norm|norm)", "the share of the running statistics that stays at each step"),
    ("use_global_stats", "", "whether the running statistics are used; None: in evaluation alone"),
    ("training", "", "whether it acts as in training"),
    ("dropout dropout_rate attn_dropout_rate dropout1_rate", "", "the probability that an element is dropped"),
    ("p", r".*[Dd]rop", "the probability that an element is dropped"),
    ("inplace", "", "whether the operand is overwritten"),
    ("learning_rate", r"argosy\.optimizer", "a number, or a schedule of argosy.optimizer.lr"),
    ("parameters", r"argosy\.(optimizer|nn\.utils|incubate)", "the tensors that are changed, or groups of them"),
    ("weight_decay", r"argosy\.optimizer", "a number or a regularizer; None is none"),
    ("grad_clip", "", "one of the ClipGradBy... of argosy.nn, used before each step"),
    ("multi_precision", "", "whether parameters of 16 bits have copies of 32 bits that are updated"),
    ("beta1 beta2", r"argosy\.optimizer", "the share of the old moment that stays at each step"),
    ("last_epoch", r"argosy\.optimizer", "the number of the step to go on from; -1 is the beginning"),
    ("verbose", r"argosy\.(optimizer|callbacks)", "whether it prints what it does"),
    ("group", r"argosy\.distributed", "the ranks that take part; None is all"),
    ("sync_op", r"argosy\.distributed", "whether the call waits; else it returns a task to wait() for"),
    ("mesh", r"argosy(\.distributed|_autoparallel)", "the ranks in rows and columns, a ProcessMesh"),
    ("placements", r"argosy(\.distributed|_autoparallel)", "Shard, Replicate or Partial for each axis of the mesh"),
    ("dist_tensor", "", "a distributed tensor"),
    ("op", r"argosy\.distributed\.(all_)?reduce", "one of ReduceOp: SUM, MAX, MIN, PROD, AVG"),
    ("pretrained", r"argosy\.vision", "True is an error: no trained weights are shipped"),
    ("with_pool", r"argosy\.vision", "whether the features are averaged over the picture at the end"),
    ("keys", r"argosy\.vision\.transforms", "which of several inputs are pictures; None: the first"),
    ("transform", r"argosy\.vision\.datasets", "what each picture is given to before it is returned"),
    ("backend", r"argosy\.vision", "how pictures are read: pil, cv2 or tensor; None is the current setting"),
    ("fill", r"argosy\.vision", "the value of places that come from outside of the picture"),
    ("interpolation", r"argosy\.vision", "how values between pixels are found"),
    ("blank", r".*(ctc|rnnt|CTC|RNNT)", "the label that stands for nothing"),
    ("executor", r"argosy\.static", "an Executor"),
    ("quant_bits", "", "the bits of an integer"),
)  # fmt: skip


def meaning(parameter: str, path: str, doc: str) -> str:
    """What ``parameter`` of the thing at ``path`` is, where its docstring ``doc`` does not name it; else empty."""
    if re.search(rf"\b{re.escape(parameter)}\b", doc):
        return ""
    return next((text for names, where, text in MEANINGS if parameter in names.split() and re.match(where, path)), "")
