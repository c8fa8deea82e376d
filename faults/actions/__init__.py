"""The actions, one file for each with its declaration ``ACTION``. Adding a file adds an action to the language."""
