"""The phases, one file for each family: adding a file adds its phases.

Each has a tuple ``PHASES`` and, if a JVM is stopped there, a tuple ``RULES``: how it is stopped (:mod:`..probes.rule`).
"""
