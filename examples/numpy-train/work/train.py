"""Train softmax regression on handwritten digits with numpy: the Docker example.

Reads /in/digits.csv (the data of examples/digits), writes /out/weights.npy, shape (65, 10), and /out/metrics.json.
"""

import json
import os
import sys
from pathlib import Path

import numpy as np

HELD_OUT_EVERY = 5


def main() -> int:
    """Train for EPOCHS passes and report the accuracy on held-out images."""
    epochs = int(os.environ.get("EPOCHS", "100"))
    table = np.loadtxt("/in/digits.csv", delimiter=",", dtype=np.int64)
    pixels = np.hstack([table[:, :64] / 16.0, np.ones((len(table), 1))])
    digits = table[:, 64]
    held_out = np.arange(len(table)) % HELD_OUT_EVERY == 0
    x, wanted = pixels[~held_out], np.eye(10)[digits[~held_out]]

    weights = np.zeros((65, 10))
    for epoch in range(1, epochs + 1):
        scores = x @ weights
        chances = np.exp(scores - scores.max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        weights -= 0.5 * x.T @ (chances - wanted) / len(x)
        if epoch % 10 == 0 or epoch == epochs:
            loss = -np.log((chances * wanted).sum(axis=1)).mean()
            print(f"epoch {epoch} of {epochs}, loss {loss:.4f}", flush=True)

    right = int(((pixels[held_out] @ weights).argmax(axis=1) == digits[held_out]).sum())
    out = Path("/out")
    np.save(out / "weights.npy", weights)
    metrics = {
        "accuracy": f"{right / int(held_out.sum()):.4f}",
        "correct": right,
        "held_out": int(held_out.sum()),
        "numpy": np.__version__,
    }
    (out / "metrics.json").write_text(json.dumps(metrics, sort_keys=True) + "\n")
    print(f"{right} of {int(held_out.sum())} held-out digits read correctly")
    return 0


if __name__ == "__main__":
    sys.exit(main())
