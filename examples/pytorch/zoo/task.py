"""The interface of all models: random batches, and the losses of a training step."""

import torch
from torch import nn


class Task(nn.Module):
    """A model and its training task.

    A step iterates over `parts()` and `losses()` in parallel: each loss is computed after the previous part has been
    updated, and then updates its own part. Most models have a single part and a single loss.
    """

    learning_rate = 3e-4

    def batch(self, size, generator):
        """Random samples as a tuple of CPU tensors; the first dimension is the number of samples."""
        raise NotImplementedError

    def loss(self, *batch):
        """The loss of a model with a single part."""
        raise NotImplementedError

    def losses(self, *batch):
        """Yields one loss for each part."""
        yield self.loss(*batch)

    def parts(self):
        """The networks, each of which has its own optimizer."""
        return [self]

    def optimizer(self, part):
        return torch.optim.AdamW(part.parameters(), self.learning_rate)


def train_step(task, optimizers, batch, precision):
    """Runs the forward pass, the backward pass and the update of every part; returns the detached losses on the device.

    `precision` is entered again for each loss, because the casts that it caches are valid only until an update.
    """
    losses, values = task.losses(*batch), []
    for optimizer in optimizers:
        with precision:
            loss = next(losses)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        values.append(loss.detach())
    return values


def classes_of(size, count, generator, shape=()):
    """Random class numbers below `count`, shaped (size, *shape)."""
    return torch.randint(count, (size, *shape), generator=generator)


def images_of(size, generator, pixels, channels=3):
    """Random images, shaped (size, channels, pixels, pixels)."""
    return torch.randn(size, channels, pixels, pixels, generator=generator)
