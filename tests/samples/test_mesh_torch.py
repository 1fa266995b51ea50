"""The colours of the mesh sample, fitted by PyTorch's Adam through the same kernel."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import shaderad as sad

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

pytestmark = pytest.mark.gpu

SIZE = 48
STEPS = 60
SAME = 0.1
"""In dB of PSNR: roundings grow over the steps."""


def on_torch(x: sad.Array) -> Any:
    return torch.from_numpy(x.numpy())


def test_pytorch_fits_colours_as_well(mesh_sample: SimpleNamespace, device: sad.Device) -> None:
    fit = mesh_sample.fit.ColorFit(SIZE, subdivisions=0)
    for _ in range(STEPS):
        fit.step()
    shade = sad.torch.wrap(mesh_sample.kernels.shade)
    look, found = fit._true, fit._hits.numpy()
    hits = {name: torch.from_numpy(np.ascontiguousarray(found[name])) for name in found.dtype.names}
    shown = hits["face"] < fit.triangle_count
    target, colors = on_torch(fit.picture("target")), on_torch(fit._start).requires_grad_()
    mesh = {"corners": on_torch(fit._corners), "normals": on_torch(look.normals), "colors": colors}
    optimizer = torch.optim.Adam([colors], lr=fit.lr, betas=(0.9, 0.99))
    for _ in range(STEPS):
        optimizer.zero_grad()
        picture = shade(mesh, fit.views[0], hits)
        loss = ((picture - target)[shown] ** 2).mean()
        loss.backward()
        optimizer.step()
    psnr = mesh_sample.fit.psnr
    assert psnr(float(loss.detach())) == pytest.approx(psnr(fit.loss()), abs=SAME)
