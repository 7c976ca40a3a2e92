"""The models by name, with batch sizes for measurements."""

import dataclasses
import typing

from .dcgan import Adversaries
from .decoder import gpt_mini, gpt_small
from .diffusion import Denoising
from .encoder import bert_base, bert_small
from .inverted_residual import efficientnet_b0, mobilenet_v2
from .point_cloud import ShapeClasses
from .recommendation import ClickRate, Preference
from .recurrent import SpeechSounds, WordLanguage
from .resnet import resnet_18, resnet_50
from .task import Task
from .unet import Segmentation
from .vgg import vgg_11
from .vision_transformer import vit_small


@dataclasses.dataclass(frozen=True)
class Model:
    """A model, its family as in model descriptions, and batch sizes for measurements."""

    family: str
    build: typing.Callable[[], Task]
    batches: tuple[int, ...]


MODELS = {
    "resnet-18": Model("cnn", resnet_18, (32, 128)),
    "resnet-50": Model("cnn", resnet_50, (16, 64)),
    "vgg-11": Model("cnn", vgg_11, (32,)),
    "mobilenet-v2": Model("cnn", mobilenet_v2, (32, 128)),
    "efficientnet-b0": Model("cnn", efficientnet_b0, (32,)),
    "unet": Model("cnn", Segmentation, (8, 32)),
    "dcgan": Model("cnn", Adversaries, (64, 256)),
    "diffusion": Model("cnn", Denoising, (32, 128)),
    "bert-small": Model("transformer", bert_small, (16, 64)),
    "bert-base": Model("transformer", bert_base, (8, 32)),
    "gpt-mini": Model("transformer", gpt_mini, (8, 64)),
    "gpt-small": Model("transformer", gpt_small, (4, 16)),
    "vit-small": Model("transformer", vit_small, (16, 64)),
    "lstm-lm": Model("rnn", WordLanguage, (20, 80)),
    "gru-speech": Model("rnn", SpeechSounds, (16, 64)),
    "dlrm": Model("embedding", ClickRate, (512, 4096)),
    "ncf": Model("embedding", Preference, (1024, 16384)),
    "pointnet": Model("other", ShapeClasses, (16, 64)),
}
