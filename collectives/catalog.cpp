#include "collectives/catalog.h"

namespace tutti {
namespace {

Backend backend_of(const std::string& name) {
  if (name == "local") return Backend::kLocal;
  if (name == "mpi") return Backend::kMpi;
  return name == "nccl" ? Backend::kNccl : Backend::kAuto;
}

}  // namespace

Catalog collectives_catalog() {
  using enum KeyType;
  return {.section = "collectives",
          .noun = "",
          .doc = "How ranks exchange gradients.",
          .keys = {
              Key{"backend", kText, "auto",
                  "auto: nccl where each rank has a GPU of its own, else mpi under mpirun, else local, which "
                  "sum in the memory of the host"}
                  .one_of({"auto", "local", "mpi", "nccl"}),
              Key{"bucket_mb", kNumber, "25",
                  "gradients reduced at once, in MiB; under [sharding] gradients, full and hybrid they go by "
                  "units"}
                  .more_than(0)
                  .at_most(1e6),
          }};
}

CollectiveSettings CollectiveSettings::read(const Setting& section) {
  return {backend_of(section.at("backend").text()),
          static_cast<int64_t>(section.at("bucket_mb").number() * (int64_t{1} << 20))};
}

}  // namespace tutti
