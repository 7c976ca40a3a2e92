"""Takes more and more memory of the GPU, until there is none left for it."""

import time

import torch

BLOCK_BYTES = 512 << 20

blocks = []
while True:
    blocks.append(torch.empty(BLOCK_BYTES, dtype=torch.uint8, device="cuda").fill_(1))
    torch.cuda.synchronize()
    print(f"{len(blocks) * BLOCK_BYTES >> 20} MiB taken", flush=True)
    time.sleep(0.1)
