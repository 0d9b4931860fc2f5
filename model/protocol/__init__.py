"""The protocol floor: small first-order transition systems, proved, unrolled, searched and interpreted."""
