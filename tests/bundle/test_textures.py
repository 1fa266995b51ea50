"""Builds of kernels with textures: what is written, and what runs where it is loaded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad.bundle.format.document import with_digest
from tests.bundle import textures
from tests.bundle.test_header import COMPILERS, compile_header
from tests.bundle.textures import Material

pytestmark = pytest.mark.gpu

COUNT = 40
PLACES = {
    "spirv": {"set", "binding"},
    "wgsl": {"set", "binding"},
    "hlsl": {"register", "space"},
    "metal": {"texture"},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("textures") / "out"
    sad.build(textures.__file__, out, targets=tuple(PLACES), jvp=True)
    return out


def arguments() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {
        "color": sad.texture(np.float32(rng.uniform(0, 1, (8, 8, 4))), mips=True),
        "sky": sad.texture(np.float32(rng.uniform(0, 1, (6, 4, 4, 4))), dimension="cube"),
        "decals": sad.texture(
            np.float32(rng.uniform(0, 1, (3, 5, 4, 2))), mips=True, dimension="2d-array"
        ),
        "smooth": sad.sampler(wrap="mirror"),
        "tint": np.float32([1, 2, 3]),
    }


def test_it_runs_as_its_source_does(folder: Path, device: sad.Device) -> None:
    rng = np.random.default_rng(1)
    at = np.float32(rng.uniform(0, 1, (COUNT, 2)))
    d, bar = (np.float32(rng.normal(size=(COUNT, 3))) for _ in range(2))
    given = arguments()
    found: list[list[np.ndarray]] = []
    for kernel, m in ((sad.load(folder).shaded, given), (textures.shaded, Material(**given))):
        out, pullback = sad.vjp(kernel, m, at, d)
        by_material, by_at, by_d = pullback(bar)
        fields = by_material if isinstance(by_material, dict) else vars(by_material)
        parts = [fields[name] for name in ("color", "sky", "decals", "tint")]
        _, dot = sad.jvp(kernel, (m, at, d), (None, at, d))
        found.append([x.numpy() for x in (out, *parts, by_at, by_d, dot)])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_the_manifest_says_what_is_bound(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    (entry,) = manifest["entries"]
    resources = {one["name"]: one.get("resource", "array") for one in entry["inputs"]}
    assert resources == {
        "m_color": "Texture2D", "m_sky": "TextureCube",
        "m_decals": "Texture2DArray", "m_smooth": "Sampler",
        "at": "array", "d": "array",
    }  # fmt: skip
    assert {"m_color_size", "m_sky_size", "m_decals_size", "m_smooth_settings"} <= {
        one["name"] for one in entry["uniforms"]
    }
    for target, keys in PLACES.items():
        primal, backward, _ = entry["targets"][target]["programs"]
        bound = {one["name"]: one for one in primal["resources"]}
        assert bound["m_color_texture"]["view"] == "2d"
        assert bound["m_color_texture"]["is_filtered"]
        assert bound["m_sky_cube"]["view"] == "cube"
        assert bound["m_decals_texture"]["view"] == "2d-array"
        assert bound["m_decals_texture"]["is_filtered"]
        assert bound["m_smooth_sampler"]["access"] == "sampler"
        assert set(bound["m_color_texture"]["place"]) == keys
        texels = {one["name"]: one for one in backward["resources"]}
        assert texels["m_sky_texture"]["view"] == "2d-array"
        assert not texels["m_sky_texture"].get("is_filtered")
    header = (folder / "textures.h").read_text(encoding="utf-8")
    assert "TEXTURES_HLSL_SHADED_PRIMAL_M_COLOR_TEXTURE_REGISTER_CLASS 't'" in header
    assert "TEXTURES_METAL_SHADED_PRIMAL_M_SMOOTH_SAMPLER_SAMPLER 0" in header
    assert "    int32_t m_color_size_3; // mip levels\n" in header


C_PROGRAM = """
#define PRIMAL(name) TEXTURES_SPIRV_SHADED_PRIMAL_##name
#define BWD(name) TEXTURES_SPIRV_SHADED_BWD_##name
#define IS(text, other) static_assert(sizeof(text) == sizeof(other), other)
IS(PRIMAL(M_COLOR_TEXTURE_VIEW), "2d");
IS(PRIMAL(M_SKY_CUBE_VIEW), "cube");
IS(PRIMAL(M_DECALS_TEXTURE_VIEW), "2d-array");
IS(BWD(M_SKY_TEXTURE_VIEW), "2d-array");
static_assert(PRIMAL(M_SKY_CUBE_IS_FILTERED) && !BWD(M_SKY_TEXTURE_IS_FILTERED), "filters");
static_assert(PRIMAL(M_SMOOTH_SAMPLER_BINDING) != PRIMAL(M_COLOR_TEXTURE_BINDING), "bindings");
static_assert((0x15u * TEXTURES_SAMPLER_MIRROR | TEXTURES_SAMPLER_LINEAR |
               TEXTURES_SAMPLER_MIXES_LEVELS) == %uu, "settings");
static_assert((TEXTURES_SAMPLER_REPEAT | TEXTURES_SAMPLER_CLAMP << 2) == %uu, "settings");
int layers(textures_spirv_shaded_primal_parameters words) { return words.m_decals_size_2; }
int mip_levels(textures_spirv_shaded_primal_parameters words) { return words.m_color_size_3; }
"""


@pytest.mark.parametrize("compiler", COMPILERS)
def test_a_c_program_has_views_and_settings_from_the_header(compiler: str, folder: Path) -> None:
    smooth, rough = (
        sad.sampler(wrap="mirror"),
        sad.sampler("nearest", ("repeat", "clamp", "repeat"), mip_filter="nearest"),
    )
    program = C_PROGRAM % (smooth.word, rough.word)
    compile_header(compiler, folder / "textures.h", program)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda entry: entry["inputs"][0].update(resource="array"),
        lambda entry: entry["inputs"][0].update(resource="Texture3D"),
        lambda entry: entry["inputs"][2].update(resource="Texture3D"),
        lambda entry: entry["inputs"][4].update(resource="Texture2D"),
        lambda entry: entry["inputs"][3].update(resource="Texture2D"),
        lambda entry: entry["targets"]["spirv"]["programs"][0]["resources"][0].update(
            access="texture", view="2d"
        ),
        lambda entry: entry["targets"]["spirv"]["programs"][0]["resources"][1].update(view=None),
    ],
)
def test_a_spoiled_manifest_is_refused(
    folder: Path, tmp_path: Path, device: sad.Device, spoil: Any
) -> None:
    """Where it is loaded, or where a resource of another kind would be bound."""
    for path in folder.iterdir():
        (tmp_path / path.name).symlink_to(path)
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    spoil(manifest["entries"][0])
    (tmp_path / "manifest.json").unlink()
    (tmp_path / "manifest.json").write_bytes(with_digest(json.dumps(manifest).encode()))
    at, d = np.zeros((COUNT, 2), np.float32), np.ones((COUNT, 3), np.float32)
    with pytest.raises(sad.Error):
        sad.load(tmp_path).shaded(arguments(), at, d).numpy()
