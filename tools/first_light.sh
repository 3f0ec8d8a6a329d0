#!/bin/bash
# tools/first_light.sh [OPTION...]: checks tutti on its first GPU, in ten minutes; docs/gpu.md says how.
exec "${TUTTI_PYTHON:-python3}" "$(dirname "$(readlink -f "$0")")/first_light.py" "$@"
