#!/bin/bash
# mpirun with what Open MPI wants to hear when it is run by root (in containers) and with more ranks than
# cores: ranks are not bound to cores, and one that waits yields its core to those that compute.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
exec mpirun --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 "$@"
