"""The dialects shipped here: builtin, control and test. Each is loaded when its name is first met."""
