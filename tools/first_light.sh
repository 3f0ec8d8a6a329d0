#!/bin/bash
# tools/first_light.sh [OPTION...]: checks tutti on the first GPU, in ten minutes at most; docs/gpu.md says how.
exec "${TUTTI_PYTHON:-python3}" "$(dirname "$(readlink -f "$0")")/first_light.py" "$@"
