"""What every model of the zoo offers: made-up batches, and the losses of one training step."""

import torch
from torch import nn


class Task(nn.Module):
    """A model together with what it is trained to do.

    A step goes through `parts()` and `losses()` side by side: each loss is asked for when the part before
    has been updated, then updates its own part. Most models have one of each.
    """

    learning_rate = 3e-4

    def batch(self, size, generator):
        """Made-up samples as a tuple of tensors on the processor; the first dimension counts samples."""
        raise NotImplementedError

    def loss(self, *batch):
        """The loss of the only part."""
        raise NotImplementedError

    def losses(self, *batch):
        """One loss for each part, in turn."""
        yield self.loss(*batch)

    def parts(self):
        """The networks that have an optimizer each."""
        return [self]

    def optimizer(self, part):
        return torch.optim.AdamW(part.parameters(), self.learning_rate)


def train_step(task, optimizers, batch, precision):
    """Forward, backward and update of every part; the losses, detached, still on the device.

    `precision` is entered anew for each loss: the casts that it remembers hold until an update.
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
