"""A training with Lightning, whose data loader can go on in the middle of an epoch."""

import lightning
import torch
from cohabit.integrations.lightning import CohabitCallback
from hold import hold

HELD, BATCHES = 9, 6


class Loader:
    """Batches in an order of its own in each epoch; its state is the epoch and the batch."""

    def __init__(self, inputs):
        self.inputs, self.epoch, self.batch = inputs, 0, 0

    def __len__(self):
        return BATCHES

    def __iter__(self):
        # The last batch of an epoch is not always followed by the end of the iterator.
        if self.batch == BATCHES:
            self.epoch, self.batch = self.epoch + 1, 0
        order = torch.randperm(len(self.inputs), generator=torch.Generator().manual_seed(self.epoch))
        while self.batch < BATCHES:
            self.batch += 1
            yield self.inputs[order[(self.batch - 1) * 8 : self.batch * 8]]

    def state_dict(self):
        return {"epoch": self.epoch, "batch": self.batch}

    def load_state_dict(self, state):
        self.epoch, self.batch = state["epoch"], state["batch"]


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))

    def training_step(self, batch, _):
        loss = torch.nn.functional.mse_loss(self.layers(batch), batch.sum(dim=1, keepdim=True))
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.01)


class Holding(lightning.Callback):
    def on_train_batch_end(self, trainer, *_):
        if trainer.global_step == HELD:
            hold()


lightning.seed_everything(1)
inputs = torch.randn(48, 4)
callback = CohabitCallback()
trainer = lightning.Trainer(
    max_epochs=4,
    accelerator="cpu",
    devices=1,
    callbacks=[Holding(), callback],
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
model = Model()
trainer.fit(model, Loader(inputs), ckpt_path=callback.latest())
with torch.no_grad():
    whole = torch.nn.functional.mse_loss(model.layers(inputs), inputs.sum(dim=1, keepdim=True)).item()
print(f"steps {trainer.global_step}")
print(f"final loss {trainer.callback_metrics['loss'].item()!r} {whole!r}")
