#include "collectives/catalog.h"

namespace tutti {

Catalog collectives_catalog() {
  using enum KeyType;
  return {.section = "collectives",
          .noun = "",
          .doc = "How ranks exchange gradients.",
          .keys = {
              Key{"backend", kText, "auto", "auto: mpi under mpirun, else local"}.one_of(
                  {"auto", "local", "mpi", "nccl"}),
              Key{"reduction", kText, "ordered",
                  "ordered: the same bits on every backend and run; native: the backend's own sums"}
                  .one_of({"ordered", "native"}),
              Key{"bucket_mb", kNumber, "25", "gradients reduced at once, in MiB"}.more_than(0).at_most(1e6),
          }};
}

}  // namespace tutti
