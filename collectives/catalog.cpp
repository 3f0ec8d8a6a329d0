#include "collectives/catalog.h"

namespace tutti {

Kind<CollectiveSettings> CollectiveSettings::kind() {
  return {"collectives",
          "How ranks exchange gradients.",
          {option("backend", &CollectiveSettings::backend,
                  "auto: nccl where each rank has a GPU of its own, else mpi under mpirun, else local, which "
                  "sum in the memory of the host",
                  {{"auto", Backend::kAuto},
                   {"local", Backend::kLocal},
                   {"mpi", Backend::kMpi},
                   {"nccl", Backend::kNccl}}),
           option("bucket_mb", &CollectiveSettings::bucket_mb,
                  "gradients reduced at once, in MiB; under [sharding] gradients, full and hybrid they go by "
                  "units")
               .more_than(0)
               .at_most(1e6)}};
}

}  // namespace tutti
