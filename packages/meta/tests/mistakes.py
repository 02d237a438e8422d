"""A hundred mistakes that users make, and what they are told: ``python packages/meta/tests/mistakes.py`` writes
``golden/mistakes.txt`` anew, which is read through once a release; a test compares.

Each is a line of code; those in a paragraph belong to one theme. ``x`` is [2, 3], ``w`` [4, 2], ``m`` a square matrix.
"""

import re
import sys
import warnings
from pathlib import Path

import argosy as paddle

GOLDEN = Path(__file__).parent / "golden" / "mistakes.txt"

MISTAKES = """
x.mena()
x.reshap([3, 2])
x.no_such_thing_at_all
paddle.mathmul(x, x)
paddle.nn.Lienar(3, 4)
paddle.nn.functional.rleu(x)
paddle.optimizer.Admm
model.wieght
paddle.no_such_thing_at_all

paddle.nn.Linear(3, 4, bias=False)
paddle.nn.Linear(3, 4, biass_attr=False)
paddle.optimizer.Adam(lr=0.1, parameters=model.parameters())
paddle.optimizer.SGD(0.1, params=model.parameters())
paddle.optimizer.Adam(0.1, betas=(0.9, 0.99), parameters=model.parameters())
paddle.nn.BatchNorm2D(3, eps=1e-5)
paddle.nn.Dropout(prob=0.1)
paddle.nn.LSTM(3, 4, batch_first=True)
paddle.nn.ReLU(inplace=True)
paddle.nn.CrossEntropyLoss(label_smothing=0.1)
paddle.io.DataLoader([1, 2], batchsize=2)
paddle.optimizer.lr.StepDecay(0.1, step=3)
paddle.zeros([2], dtyp="int32")
paddle.matmul(x, x, transpose=True)
paddle.nn.functional.softmax(x, dimm=1)
paddle.sum(x, axes=1)
paddle.concat([x, x], dimension=0)

paddle.matmul(x, x)
paddle.matmul(x, w)
x @ paddle.ones([2])
x + w
x * paddle.ones([5])
paddle.bmm(x, x)
paddle.dot(x, paddle.ones([2]))
paddle.nn.Linear(4, 2)(x)
model(paddle.ones([2, 5]))
paddle.nn.Conv2D(3, 4, 3)(paddle.ones([1, 2, 8, 8]))
paddle.nn.Conv2D(3, 4, 3)(paddle.ones([8, 8]))
paddle.nn.Conv2D(3, 4, 9)(paddle.ones([1, 3, 4, 4]))
paddle.nn.BatchNorm2D(3)(paddle.ones([1, 4, 2, 2]))
paddle.nn.LayerNorm(4)(x)
paddle.nn.Embedding(10, 4)(paddle.to_tensor([11]))
paddle.nn.Embedding(10, 4)(x)
paddle.nn.functional.cross_entropy(x, paddle.to_tensor([0, 5]))
paddle.nn.functional.cross_entropy(x, paddle.to_tensor([0, 1, 2]))
paddle.nn.functional.mse_loss(x, w)
paddle.nn.MultiHeadAttention(5, 2)
paddle.concat([x, w])
paddle.stack([x, w])
x.reshape([4, 2])
x.reshape([-1, -1])
x.expand([2, 4])
x.transpose([0])
x.transpose([0, 5])
x.squeeze(5)
x.unsqueeze(7)
paddle.split(x, 2, axis=1)
paddle.chunk(x, 0)
paddle.einsum("ij,jk->ik", x, x)
paddle.linalg.inv(x)
paddle.linalg.cholesky(-m)
paddle.linalg.solve(m, paddle.ones([3]))
paddle.nn.functional.pad(x, [1])
paddle.nn.functional.one_hot(paddle.to_tensor([5]), 3)

x[5]
x[0, 0, 0]
x["a"]
x[0.5]
x[paddle.to_tensor([9])]
x[paddle.to_tensor([True, False, True])]
x.sum(axis=4)
x.argmax(axis=-9)
paddle.gather(x, paddle.to_tensor([7]))
paddle.topk(x, 9)

x + "a"
x + None
paddle.add(x, [1, 2])
paddle.to_tensor([[1, 2], [3]])
paddle.to_tensor("text")
paddle.to_tensor([1], dtype="flaot32")
x.astype("int33")
paddle.ones([2, -1])
paddle.ones("2")
paddle.arange(0, 1, 0)
paddle.ones([2], "int32") + paddle.ones([2], "int64")
paddle.bitwise_and(x, x)
paddle.nn.functional.gelu("x")
int(x)
bool(x)
x.item()
float(paddle.ones([2]))

paddle.nn.Linear("a", 4)
paddle.nn.Conv2D(3, 4, 0)
paddle.nn.Conv2D(3, 4, 3, groups=2)
paddle.nn.Conv2D(3, 4, 3, padding_mode="mirror")
paddle.nn.Sequential(1, 2)
paddle.optimizer.Adam(0.1)
paddle.optimizer.Adam(-0.1, parameters=model.parameters())
paddle.optimizer.Adam(0.1, parameters=model)
paddle.optimizer.SGD("fast", parameters=model.parameters())
paddle.io.DataLoader(5)
paddle.io.DataLoader([1, 2], batch_size=0)
paddle.set_default_dtype("int32")

learnt.add_(1.0)
paddle.grad(x, learnt)
(learnt * 2).backward(paddle.ones([7]))
paddle.load("/no/such/file.pdparams")
paddle.save(x, "")
"""
"""Code; blank lines part themes."""


def _names() -> dict[str, object]:
    paddle.seed(0)
    learnt = paddle.ones([2])
    learnt.stop_gradient = False
    return {
        "paddle": paddle, "x": paddle.ones([2, 3]), "w": paddle.ones([4, 2]), "m": paddle.eye(2),
        "model": paddle.nn.Linear(3, 4), "learnt": learnt,
    }  # fmt: skip


def told(code: str) -> str:
    """The kind and text of the error that a line of code gives, or that it gives none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compile(code, "mistake.py", "exec"), _names())
    except Exception as error:  # noqa: BLE001 (whatever it is, it is shown)
        text = re.sub(r"0x[0-9a-f]+", "0x...", str(error))
        return f"{type(error).__name__}: {re.sub('eager_tmp_[0-9]+', 'eager_tmp_N', text)}"
    return "no error"


def page() -> str:
    """All mistakes with their texts."""
    parts = []
    for theme in MISTAKES.strip().split("\n\n"):
        parts.append("\n".join(f">>> {code}\n{told(code)}" for code in theme.splitlines()))
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    GOLDEN.parent.mkdir(exist_ok=True)
    GOLDEN.write_text(page(), encoding="utf-8")
    sys.stdout.write(GOLDEN.read_text(encoding="utf-8"))
