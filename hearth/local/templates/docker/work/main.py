"""Say where this runs, and leave a report in /out."""

import json
import os
import platform
from pathlib import Path

report = {
    "greeting": os.environ["GREETING"],
    "unit": int(os.environ["HEARTH_UNIT"]),
    "python": platform.python_version(),
    "primes": [n for n in range(2, 100) if all(n % d for d in range(2, n))],
}
Path("/out/report.json").write_text(json.dumps(report, indent=2) + "\n")
print(f"{report['greeting']} from Python {report['python']}: {len(report['primes'])} primes below 100")
