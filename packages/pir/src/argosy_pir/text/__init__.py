"""The text form of programs: lexer, parser and printer."""
