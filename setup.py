"""The folders stand at the top of the repository and are installed under the one name ``onceproof``.

A user's own packages called harness, faults, assertions or jobs so never meet ours.
"""

from setuptools import find_packages, setup

CODE = ("harness", "faults", "assertions")
DATA = ("jobs", "image")
KINDS = ("json", "lark", "java", "properties", "settings", "py", "sql")

packages = ["onceproof"]
for top in CODE:
    packages += [f"onceproof.{top}", *(f"onceproof.{top}.{package}" for package in find_packages(top))]
packages += [f"onceproof.{top}" for top in DATA]

setup(
    packages=packages,
    package_dir={"onceproof": "onceproof"} | {f"onceproof.{top}": top for top in CODE + DATA},
    package_data={"": ["py.typed", *(f"*.{kind}" for kind in KINDS), "**/*.py", "**/*.md", "**/*.yml", "**/*.plan"]},
)
