"""Determines the cost of a training step of a model without computing it.

The forward pass runs on tensors that have a shape but no data, so it takes little time and no GPU at any size.

FLOPs           of matrix products, convolutions and attention, where a multiplication and an addition count as
                two: three times those of the forward pass, because the backward pass takes about twice as many.
                Element-wise operations are not counted, as is usual.
activations     tensors that the forward pass keeps for the backward pass, each storage once, without parameters
                and the batch.
operators       calls of the forward pass, with their ONNX names. Views, such as a reshape, are not counted.
"""

import collections
import dataclasses
import warnings

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.utils.flop_counter import FlopCounterMode

ONNX_NAMES = {
    "__add__": "Add",
    "__mul__": "Mul",
    "__rsub__": "Sub",
    "adaptive_avg_pool2d": "GlobalAveragePool",
    "add": "Add",
    "amax": "ReduceMax",
    "batch_norm": "BatchNormalization",
    "binary_cross_entropy_with_logits": "SigmoidCrossEntropyLoss",
    "bmm": "MatMul",
    "cat": "Concat",
    "conv1d": "Conv",
    "conv2d": "Conv",
    "conv_transpose2d": "ConvTranspose",
    "cos": "Cos",
    "cross_entropy": "SoftmaxCrossEntropyLoss",
    "dropout": "Dropout",
    "embedding": "Gather",
    "embedding_bag": "EmbeddingBag",
    "gelu": "Gelu",
    "group_norm": "GroupNormalization",
    "gru": "GRU",
    "hardtanh": "Clip",
    "interpolate": "Resize",
    "layer_norm": "LayerNormalization",
    "leaky_relu": "LeakyRelu",
    "linear": "MatMul",
    "lstm": "LSTM",
    "max_pool2d": "MaxPool",
    "mse_loss": "MeanSquaredError",
    "mul": "Mul",
    "relu": "Relu",
    "relu6": "Clip",
    "scaled_dot_product_attention": "Attention",
    "sigmoid": "Sigmoid",
    "silu": "Swish",
    "sin": "Sin",
    "sqrt": "Sqrt",
    "stack": "Concat",
    "tanh": "Tanh",
}
ATTENTION = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
TRAINING_FLOPS_PER_FORWARD_FLOP = 3


@dataclasses.dataclass(frozen=True)
class Anatomy:
    """The cost of a model; FLOPs and activations are those of a whole step."""

    parameters: int
    flops: int
    activation_bytes: int
    input_bytes: int
    operators: dict[str, int]


class OperatorCounter(TorchFunctionMode):
    """Counts calls of PyTorch functions, without the calls that these functions make."""

    def __init__(self):
        super().__init__()
        self.counts = collections.Counter()

    def __torch_function__(self, function, _types, arguments=(), options=None):
        name = ONNX_NAMES.get(getattr(function, "__name__", ""))
        if name:
            self.counts[name] += 1
        return function(*arguments, **(options or {}))


def anatomy(build, batch_size, precision):
    """The cost of a step of the task that `build()` creates."""
    with FakeTensorMode(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # With oneDNN, a recurrent cell is one call of unknown FLOPs; without it, it consists of matrix products.
        with torch.backends.mkldnn.flags(enabled=False):
            task = build()
            batch = task.batch(batch_size, torch.Generator())
            return _step(task, batch, precision)


def _step(task, batch, precision):
    kept, operators = {}, OperatorCounter()

    def keep(tensor):
        storage = tensor.untyped_storage()
        kept[storage._cdata] = storage
        return tensor

    flops = FlopCounterMode(display=False, custom_mapping={ATTENTION: attention_flops})
    lower_precision = torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16")
    hooks = torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor)
    with flops, lower_precision, hooks, operators:
        losses = list(task.losses(*batch))  # The graphs of all losses, and what they keep, live until here.
    assert len(losses) == len(task.parts())
    known = {tensor.untyped_storage()._cdata for tensor in [*task.parameters(), *task.buffers(), *batch]}
    activations = [storage for identity, storage in kept.items() if identity not in known]
    return Anatomy(
        parameters=sum(parameter.numel() for parameter in task.parameters()),
        flops=TRAINING_FLOPS_PER_FORWARD_FLOP * flops.get_total_flops(),
        activation_bytes=sum(storage.nbytes() for storage in activations),
        input_bytes=sum(tensor.numel() * tensor.element_size() for tensor in batch),
        operators=dict(sorted(operators.counts.items())),
    )


def attention_flops(query, key, value, *_arguments, out_shape=None, **_options):
    """The FLOPs of both products; older versions of PyTorch do not count this operator."""
    samples, heads, length, width = query
    return 2 * samples * heads * length * key[2] * (width + value[3])
