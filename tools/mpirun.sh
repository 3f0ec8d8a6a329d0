#!/bin/bash
# mpirun with the options for root (in containers) and for more ranks than cores: ranks are not bound to
# cores, and a waiting rank yields its core.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
exec mpirun --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 "$@"
