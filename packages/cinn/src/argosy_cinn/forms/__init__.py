"""Forms: what kernels compute. A form has what it reads, the buffers it needs, its cost and a key; it knows no target.

`form` says what all of them have; `nest`, `product`, `attention`, `order`, `fourier` and `index_check` are the forms
(branches and loops, made of plans, are in `argosy_cinn.plan.control`); `indices`, `expressions`, `elementwise`,
`dtypes` and `cost` are what elements are described by.
"""
