#include <unistd.h>

// In the place of MPI's own.
extern "C" int MPI_Finalize() {
  while (true) pause();
}
