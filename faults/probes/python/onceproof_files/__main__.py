"""Runs :mod:`.program`, from this directory and without any other on the path."""

import os
import runpy
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
runpy.run_module("onceproof_files.program", run_name="__main__")
