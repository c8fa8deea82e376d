"""The rules of each family of phases, one file each with a tuple ``RULES``. Adding a file adds its rules."""
