"""A small interpreter of the test and control dialects, so that passes can be checked for what programs mean."""

from argosy_pir import decode_scalar


class Interpreter:
    """Runs programs on Python integers; tensors with an axis are lists. ``trace`` lists what effects saw, in order."""

    def __init__(self, program):
        self.program = program
        self.trace = []

    def run(self, arguments):
        """What the program returns for ``arguments``, states included."""
        return self.block(self.program.block, arguments, {})

    def block(self, block, arguments, outer):
        """The operands of the block's terminator."""
        values = {**outer, **dict(zip(block.arguments, arguments, strict=True))}
        for op in block:
            operands = [values[v] for v in op.operands]
            if op is block.last:
                return operands
            results = self.operation(op, operands, values)
            values.update(zip(op.results, results, strict=True))
        raise AssertionError("the block has no terminator")

    def operation(self, op, operands, values):
        """The results of one operation."""
        name = op.name.replace(".", "_")
        return getattr(self, name)(op, operands, values)

    def test_add(self, op, operands, values):
        return [operands[0] + operands[1]]

    def test_sub(self, op, operands, values):
        return [operands[0] - operands[1]]

    def test_neg(self, op, operands, values):
        return [-operands[0]]

    def test_effect(self, op, operands, values):
        self.trace.append(tuple(operands))
        return []

    def builtin_constant(self, op, operands, values):
        data = op.attributes["value"]
        return [decode_scalar(data.data, data.type.dtype)]

    def builtin_call(self, op, operands, values):
        function = self.program.functions[op.attributes["callee"].name]
        return self.block(function.block, operands, {})

    def control_if(self, op, operands, values):
        return self.block(op.regions[0 if operands[0] else 1].block, [], values)

    def control_for(self, op, operands, values):
        start, stop, step, *carried = operands
        for i in range(start, stop, step):
            carried = self.block(op.regions[0].block, [i, *carried], values)
        return carried

    def control_scan(self, op, operands, values):
        count = op.attributes["inputs"]
        xs, carried = operands[:count], operands[count:]
        steps = range(len(xs[0]))
        ys = {}
        for i in reversed(steps) if op.attributes.get("reverse") else steps:
            found = self.block(op.regions[0].block, [*(x[i] for x in xs), *carried], values)
            cut = len(found) - len(carried)
            ys[i], carried = found[:cut], found[cut:]
        return [*([ys[i][k] for i in steps] for k in range(len(op.results) - len(carried))), *carried]
