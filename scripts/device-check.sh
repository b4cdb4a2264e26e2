#!/bin/sh
# Checks the exporter against the GPUs of this machine and writes a report: docs/device-check.md.
# It only reads: it sets, clears and resets nothing. It needs a POSIX shell, Python 3.8 or later
# and nvidia-ml-py; without a GPU, --simulate.
set -eu

usage() {
    cat <<'EOF'
scripts/device-check.sh [OPTION]...

  --binary FILE         the exporter; default: target/release/nvml-exporter
  --simulate SCENARIO   read simulated GPUs; the simulator lies beside the exporter
  --nvml-library FILE   the NVML library instead of the driver's libnvidia-ml.so.1
  --python FILE         the interpreter; default: python3
  --pynvml PATH         a folder or wheel with nvidia-ml-py; default: a wheel beside this script
  --nvidia-smi FILE     default: nvidia-smi, if it is there
  --out DIR             where the report goes; default: $OUT, or target/device-check
  --rounds N            comparisons with NVML; default: 4
  --passes N            passes of the endurance run; default: 300
  --time-limit SECONDS  default: 220

Exit status: 0 no unexplained difference, 1 differences, 2 the check could not be made.
EOF
}

die() {
    echo "device-check: $*" >&2
    exit 2
}

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
binary=$here/../target/release/nvml-exporter
simulate='' library='' python=python3 pynvml='' smi='' out=${OUT:-$here/../target/device-check}
rounds=4 passes=300 limit=220

while [ $# -gt 0 ]; do
    case $1 in
        -h | --help) usage && exit 0 ;;
        --*=*)
            option=${1%%=*} value=${1#*=}
            shift
            set -- "$option" "$value" "$@"
            continue
            ;;
    esac
    [ $# -ge 2 ] || die "$1 needs a value, or is no option; see --help"
    case $1 in
        --binary) binary=$2 ;;
        --simulate) simulate=$2 ;;
        --nvml-library) library=$2 ;;
        --python) python=$2 ;;
        --pynvml) pynvml=$2 ;;
        --nvidia-smi) smi=$2 ;;
        --out) out=$2 ;;
        --rounds) rounds=$2 ;;
        --passes) passes=$2 ;;
        --time-limit) limit=$2 ;;
        *) die "no such option: $1; see --help" ;;
    esac
    shift 2
done

[ -x "$binary" ] || die "$binary is not there: build it with cargo build --release, or give --binary"
binary=$(CDPATH='' cd -- "$(dirname -- "$binary")" && pwd)/$(basename -- "$binary")
[ -z "$simulate" ] || [ -z "$library" ] || die "--simulate and --nvml-library exclude each other"

# The work folder is short-lived; the report's folder keeps at most eight files.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"

# nvidia-ml-py loads libnvidia-ml.so.1 by name: a link of that name leads it to the same library.
if [ -n "$simulate" ]; then
    library=$(dirname -- "$binary")/libnvml_simulator.so
    [ -e "$library" ] || die "$library is not there: build it with cargo build -p nvml-simulator"
    export NVML_SIM_SCENARIO="$simulate"
    smi=none
fi
if [ -n "$library" ]; then
    [ -e "$library" ] || die "$library is not there"
    library=$(CDPATH='' cd -- "$(dirname -- "$library")" && pwd)/$(basename -- "$library")
    ln -s "$library" "$work/libnvidia-ml.so.1"
    export LD_LIBRARY_PATH="$work${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
fi

if [ -z "$pynvml" ]; then
    for wheel in "$here"/nvidia_ml_py-*.whl; do
        [ ! -e "$wheel" ] || pynvml=$wheel
    done
fi
[ -z "$pynvml" ] || export PYTHONPATH="$pynvml${PYTHONPATH:+:$PYTHONPATH}"
"$python" -c 'import pynvml' 2>/dev/null ||
    die "$python has no module pynvml: install nvidia-ml-py, or put its wheel beside this script"

# The exporter's host label must not carry this machine's name into the report.
export NODE_NAME=device-check PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1

# A call that hangs in the driver cannot be interrupted from Python; the outer limit ends it.
guard=''
if command -v timeout >/dev/null; then guard="timeout -k 5 $((limit + 10))"; fi
status=0
$guard "$python" "$here/device_check.py" \
    --binary "$binary" --simulate "$simulate" --nvml-library "$library" --nvidia-smi "$smi" \
    --out "$out" --work "$work" --rounds "$rounds" --passes "$passes" --time-limit "$limit" ||
    status=$?
case $status in
    124 | 137) die "a call did not come back within $limit seconds; $out holds what there is" ;;
esac
exit "$status"
