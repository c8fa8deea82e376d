"""The phases, one file for each family; each file has a tuple ``PHASES``. Adding a file adds its phases."""
