"""How the protocol behaves: the executable reference of the group coordinator, its members and the assignors.

Reserved for the reference model; nothing in `spec` may depend on it.
"""
