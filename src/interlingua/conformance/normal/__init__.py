"""The normal form of each dialect's bodies: defaults left out, shorthand written long."""
