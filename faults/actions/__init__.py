"""The actions, one file for each with its declaration ``ACTION``. Adding a file adds an action.

The declaration says how the action is written, what it does (:mod:`..capabilities`), and what it must leave behind
(:mod:`onceproof.requirements`): nothing else names an action.
"""
