"""Networks of inverted residual blocks: narrow layers with wide depthwise convolutions between them.

MobileNet v2 (Sandler et al. 2018, arXiv 1801.04381) and EfficientNet B0 (Tan and Le 2019, arXiv 1905.11946), which
adds squeeze-and-excitation to each block and has smoother activations. They need little arithmetic and much memory
traffic.
"""

from torch import nn

from .image_classes import CLASSES, ImageClasses, convolution

# Expansion, channels, blocks, stride of the first block, kernel.
MOBILENET_V2 = (
    (1, 16, 1, 1, 3),
    (6, 24, 2, 2, 3),
    (6, 32, 3, 2, 3),
    (6, 64, 4, 2, 3),
    (6, 96, 3, 1, 3),
    (6, 160, 3, 2, 3),
    (6, 320, 1, 1, 3),
)
EFFICIENTNET_B0 = (
    (1, 16, 1, 1, 3),
    (6, 24, 2, 2, 3),
    (6, 40, 2, 2, 5),
    (6, 80, 3, 2, 3),
    (6, 112, 3, 1, 5),
    (6, 192, 4, 2, 5),
    (6, 320, 1, 1, 3),
)


class Excitation(nn.Module):
    """Squeeze-and-excitation: weights each channel according to the mean of all channels."""

    def __init__(self, channels, hidden):
        super().__init__()
        self.weigh = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Conv2d(channels, hidden, 1),
            nn.SiLU(inplace=True),
            nn.Conv2d(hidden, channels, 1),
            nn.Sigmoid(),
        )

    def forward(self, images):
        return images * self.weigh(images)


class InvertedResidual(nn.Module):
    """Expansion, depthwise convolution and projection; the input is added if the shapes agree."""

    def __init__(self, inputs, outputs, expansion, stride, kernel, activation, excited):
        super().__init__()
        wide = inputs * expansion
        layers = [] if expansion == 1 else [convolution(inputs, wide, 1), activation()]
        layers += [convolution(wide, wide, kernel, stride, groups=wide), activation()]
        if excited:
            layers.append(Excitation(wide, inputs // 4))
        layers.append(convolution(wide, outputs, 1))
        self.branch = nn.Sequential(*layers)
        self.adds = stride == 1 and inputs == outputs

    def forward(self, images):
        made = self.branch(images)
        return images + made if self.adds else made


def network(stages, activation, excited):
    layers, inputs = [convolution(3, 32, 3, 2), activation()], 32
    for expansion, outputs, depth, first_stride, kernel in stages:
        for number in range(depth):
            stride = first_stride if number == 0 else 1
            layers.append(InvertedResidual(inputs, outputs, expansion, stride, kernel, activation, excited))
            inputs = outputs
    layers += [convolution(inputs, 1280, 1), activation(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*layers, nn.Dropout(0.2), nn.Linear(1280, CLASSES))


def mobilenet_v2():
    return ImageClasses(network(MOBILENET_V2, lambda: nn.ReLU6(inplace=True), excited=False))


def efficientnet_b0():
    return ImageClasses(network(EFFICIENTNET_B0, lambda: nn.SiLU(inplace=True), excited=True))
