"""What pyproject.toml cannot say: the clone's folder of examples is installed as hearth/examples."""

from setuptools import find_packages, setup

setup(
    packages=[*find_packages(include=["hearth*", "keeper*", "worker*"]), "hearth.examples"],
    package_dir={"hearth.examples": "examples"},
)
