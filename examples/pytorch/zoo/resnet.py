"""Residual networks (He et al. 2016, arXiv 1512.03385): 18 layers with basic blocks, 50 with bottleneck blocks."""

from torch import nn

from .image_classes import CLASSES, ImageClasses, convolution

STAGE_WIDTHS = (64, 128, 256, 512)


class Residual(nn.Module):
    """Adds the output of its branch to the input, or to a projection of the input."""

    def __init__(self, branch, inputs, outputs, stride):
        super().__init__()
        self.branch = branch
        same = stride == 1 and inputs == outputs
        self.shortcut = nn.Identity() if same else convolution(inputs, outputs, 1, stride)
        self.activation = nn.ReLU(inplace=True)

    def forward(self, images):
        return self.activation(self.branch(images) + self.shortcut(images))


def basic(inputs, width, stride):
    branch = nn.Sequential(
        convolution(inputs, width, 3, stride), nn.ReLU(inplace=True), convolution(width, width, 3)
    )
    return Residual(branch, inputs, width, stride)


def bottleneck(inputs, width, stride):
    branch = nn.Sequential(
        convolution(inputs, width, 1),
        nn.ReLU(inplace=True),
        convolution(width, width, 3, stride),
        nn.ReLU(inplace=True),
        convolution(width, 4 * width, 1),
    )
    return Residual(branch, inputs, 4 * width, stride)


def network(block, expansion, depths):
    stem = [convolution(3, 64, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    blocks, inputs = [], 64
    for stage, (width, depth) in enumerate(zip(STAGE_WIDTHS, depths, strict=True)):
        for number in range(depth):
            stride = 2 if stage > 0 and number == 0 else 1
            blocks.append(block(inputs, width, stride))
            inputs = width * expansion
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, CLASSES)]
    return nn.Sequential(*stem, *blocks, *head)


def resnet_18():
    return ImageClasses(network(basic, 1, (2, 2, 2, 2)))


def resnet_50():
    return ImageClasses(network(bottleneck, 4, (3, 4, 6, 3)))
