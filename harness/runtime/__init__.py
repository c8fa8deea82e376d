"""Processes of the harness's own machine: who starts them, who ends them, their ports, and the one way to wait."""
