"""Proxies between the job and the services of its targets: they stop requests and answers, and report them as points.

How a service is spoken to is :mod:`onceproof.faults.protocols`; what happens at a point is the injector's.
"""
