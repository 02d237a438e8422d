"""Random programs for property tests, built by hypothesis."""

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from argosy_pir import (
    Block,
    Builder,
    Dense,
    Function,
    Location,
    OpaqueType,
    Operation,
    Program,
    Region,
    Symbol,
    SymExpr,
    TensorType,
    TokenType,
    maximum,
    minimum,
)
from argosy_pir.types import FunctionType

steady = settings(deadline=None, max_examples=40, suppress_health_check=list(HealthCheck))
"""Settings for property tests: short, and not dependent on the speed of the machine."""

EXAMPLE = """\
program @train(%x: tensor<[s0, 3], float32>) state(%w = "linear_0.w_0": tensor<[3, 4], float32> {a = true}) {
  %0 = prim.dot_general(%x, %w) {lhs_contract = (1,)} : tensor<[s0, 4], float32> loc("f.py":12)
  %lr = builtin.constant() {value = dense<tensor<[3, 4], float32>, 0.1>} : tensor<[3, 4], float32>
  %w#1 = prim.sub(%w, %lr) : tensor<[3, 4], float32>
  %last, %1 = control.while(%0, %0) : tensor<[s0, 4], float32>, tensor<[s0, 4], float32> region (%i: token) {
    control.condition(%i)
  } region {
    control.yield()
  }
  return(%0; %w#1)
}
"""

names = st.text(min_size=1, max_size=6) | st.sampled_from(["x", "x_1", "0", "w.1", "a b", "inf", "é"])
symbols = st.sampled_from(["s0", "s1", "batch"]).map(SymExpr.symbol)


def _combine(children):
    pairs = st.tuples(children, children)
    numbers = st.integers(1, 7) | st.integers(-4, -1)
    return st.one_of(
        pairs.map(lambda p: p[0] + p[1]),
        pairs.map(lambda p: p[0] - p[1]),
        pairs.map(lambda p: p[0] * p[1]),
        pairs.map(lambda p: minimum(*p)),
        pairs.map(lambda p: maximum(*p)),
        st.tuples(children, numbers).map(lambda p: p[0] // p[1]),
        st.tuples(children, numbers).map(lambda p: p[0] % p[1]),
    )


dims = st.recursive(symbols | st.integers(-5, 100), _combine, max_leaves=5)
sizes = st.integers(0, 9) | dims.filter(lambda d: isinstance(d, SymExpr) or d >= 0)
dtypes = st.sampled_from(["float32", "bfloat16", "int64", "bool", "complex64", "float8_e5m2", "custom"])
tensor_types = st.builds(TensorType, st.lists(sizes, max_size=3).map(tuple), dtypes)
leaf_types = tensor_types | st.just(TokenType()) | st.builds(OpaqueType, st.text(max_size=5))
types = leaf_types | st.builds(FunctionType, st.lists(leaf_types, max_size=2), st.lists(leaf_types, max_size=2))


@st.composite
def dense(draw):
    dtype, item = draw(st.sampled_from([("float32", 4), ("bool", 1), ("int16", 2), ("bfloat16", 2), ("complex64", 8)]))
    shape = tuple(draw(st.lists(st.integers(0, 3), max_size=2)))
    count = 1
    for size in shape:
        count *= size
    if dtype == "bool":
        return Dense(TensorType(shape, dtype), bytes(draw(st.lists(st.integers(0, 1), min_size=count, max_size=count))))
    length = item * draw(st.sampled_from([1, count]))
    return Dense(TensorType(shape, dtype), draw(st.binary(min_size=length, max_size=length)))


plain = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.complex_numbers(), st.text(max_size=8),
    st.binary(max_size=8), dims, types, names.map(lambda n: Symbol("@" + n)), dense(),
)  # fmt: skip
attributes = st.recursive(
    plain,
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.dictionaries(names, inner, max_size=2),
    max_leaves=4,
)
attribute_sets = st.dictionaries(names, attributes, max_size=3)
single_locations = st.builds(Location, names, st.integers(0, 999), st.integers(0, 99), st.text(max_size=4))
locations = st.none() | single_locations | st.lists(single_locations, max_size=3).map(Location.fuse)
operation_names = st.sampled_from(["foo.add", "foo.bar.baz", "inf.x", "weird name", "nodot", "return", "a.1$"])


@st.composite
def programs(draw, max_operations=6):
    """A structurally valid program of unknown operations, with states, nested regions and functions."""
    program = Program(draw(names))
    hints = st.none() | names
    for type_ in draw(st.lists(types, max_size=2)):
        program.add_input(type_, draw(hints))
    for name in draw(st.lists(names, max_size=2, unique=True)):
        program.add_state(name, draw(tensor_types), draw(attribute_sets), draw(hints))
    program.attributes.update(draw(attribute_sets))
    values = _fill(draw, program.block, [*program.block.arguments], max_operations, 2)
    outputs = draw(st.lists(st.sampled_from(values), max_size=2)) if values else []
    program.set_outputs(outputs)
    if draw(st.booleans()):
        function = Function(draw(names), draw(st.lists(types, max_size=2)))
        inner = _fill(draw, function.block, [*function.block.arguments], 2, 1)
        function.block.append(Operation("builtin.return", inner[:2]))
        function.attributes.update(draw(attribute_sets))
        program.add_function(function)
    return program


def _fill(draw, block, values, count, depth):
    builder = Builder(block)
    for _ in range(draw(st.integers(0, count))):
        operands = draw(st.lists(st.sampled_from(values), max_size=2)) if values else []
        regions = [_region(draw, values, depth) for _ in range(draw(st.integers(0, 1 if depth else 0)))]
        op = builder.create(
            draw(operation_names),
            operands,
            draw(attribute_sets),
            draw(st.lists(types, max_size=2)),
            regions,
            draw(locations),
        )
        op.annotate(**draw(attribute_sets))
        for result in op.results:
            result.name_hint = draw(st.none() | names)
        values = [*values, *op.results]
    return values


def _region(draw, values, depth):
    blocks = []
    for _ in range(draw(st.integers(0, 2))):
        block = Block(draw(st.lists(types, max_size=2)))
        _fill(draw, block, [*values, *block.arguments], 2, depth - 1)
        blocks.append(block)
    return Region(blocks)
