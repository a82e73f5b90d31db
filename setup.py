"""What pyproject.toml cannot say: the clone's folder of examples is installed as hearth/examples.

In a clone (`pip install --editable`) Python finds the package by a line in a .pth file, not by a finder that is asked
last: such a finder loses to any folder named hearth beside a script, the clone itself among them.
"""

from setuptools import find_packages, setup

setup(
    packages=[*find_packages(include=["hearth*", "keeper*", "worker*"]), "hearth.examples"],
    package_dir={"hearth.examples": "examples"},
    options={"editable_wheel": {"mode": "compat"}},
)
