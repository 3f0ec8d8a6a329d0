# The Open MPI whose library programs of a build load: of the environment's TUTTI_OPENMPI, a folder with bin/
# and lib/; else the system's, whose headers serve for both: libmpi.so.40 of Open MPI 4 and 5 have one
# interface. tools/mpirun.sh chooses the mpirun in the same way.
set(folder $ENV{TUTTI_OPENMPI})
if(folder AND EXISTS ${folder}/lib/libmpi.so.40)
  message(STATUS "Open MPI: ${folder}")
  list(PREPEND CMAKE_BUILD_RPATH ${folder}/lib)
  list(APPEND CMAKE_INSTALL_RPATH ${folder}/lib)
else()
  message(STATUS "Open MPI: the system's")
endif()
