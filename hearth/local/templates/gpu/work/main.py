"""Multiply two matrices on the GPU, compare with the CPU, and leave the speed in /out."""

import json
import time
from pathlib import Path

import torch

SIZE, ROUNDS = 4096, 20

torch.manual_seed(0)
left, right = torch.rand(SIZE, SIZE), torch.rand(SIZE, SIZE)
on_gpu = left.cuda(), right.cuda()
product = on_gpu[0] @ on_gpu[1]
error = (product[:64].cpu() - left[:64] @ right).abs().max().item() / SIZE
torch.cuda.synchronize()
begun = time.perf_counter()
for _ in range(ROUNDS):
    product = on_gpu[0] @ on_gpu[1]
torch.cuda.synchronize()
seconds = time.perf_counter() - begun
report = {
    "gpu": torch.cuda.get_device_name(),
    "memory_gib": round(torch.cuda.get_device_properties(0).total_memory / 2**30, 1),
    "tflops": round(2 * SIZE**3 * ROUNDS / seconds / 1e12, 2),
    "largest_relative_error": error,
}
Path("/out/report.json").write_text(json.dumps(report, indent=2) + "\n")
print(f"{report['gpu']}: {report['tflops']} TFLOPS")
