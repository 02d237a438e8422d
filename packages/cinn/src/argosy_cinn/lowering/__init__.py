"""Lowering: from operations to what forms are made of: which kind of code each becomes, elements as expressions."""
