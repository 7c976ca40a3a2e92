"""Takes more and more memory of the GPU, until there is none left for it: in the way that its argument names."""

import ctypes
import sys
import time

BLOCK_BYTES = 512 << 20
CU_MEM_ATTACH_GLOBAL = 1


def with_torch():
    """PyTorch's allocator, as its environment sets it up."""
    import torch

    def take():
        block = torch.empty(BLOCK_BYTES, dtype=torch.uint8, device="cuda").fill_(1)
        torch.cuda.synchronize()
        return block

    return take


def managed():
    """Managed memory, which the driver moves between host and GPU, touched on the GPU."""
    import torch

    torch.cuda.init()
    torch.ones(1, device="cuda")
    cuda = ctypes.CDLL("libcuda.so.1")

    def take():
        block = ctypes.c_uint64()
        checked("cuMemAllocManaged", cuda.cuMemAllocManaged(ctypes.byref(block), BLOCK_BYTES, CU_MEM_ATTACH_GLOBAL))
        checked("cuMemsetD8_v2", cuda.cuMemsetD8_v2(block, ctypes.c_ubyte(1), ctypes.c_size_t(BLOCK_BYTES)))
        checked("cuCtxSynchronize", cuda.cuCtxSynchronize())
        return block

    return take


def checked(function, code):
    if code != 0:
        raise MemoryError(f"{function}: CUDA error {code}")


def main():
    take = {"torch": with_torch, "managed": managed}[sys.argv[1] if len(sys.argv) > 1 else "torch"]()
    most = int(sys.argv[2]) << 20 if len(sys.argv) > 2 else None
    blocks = []
    while most is None or len(blocks) * BLOCK_BYTES < most:
        blocks.append(take())
        print(f"{len(blocks) * BLOCK_BYTES >> 20} MiB taken", flush=True)
        time.sleep(0.1)
    time.sleep(3600)


if __name__ == "__main__":
    main()
