"""Certification: the space of points of a sink, the trials that cover it, and the certificate over them."""
