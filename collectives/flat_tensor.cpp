#include "collectives/flat_tensor.h"

#include "collectives/ordered_sum.h"
#include "runtime/error.h"

namespace tutti {

void check_flat(const at::Tensor& tensor) {
  TUTTI_ASSERT(tensor.defined() && tensor.dim() == 1 && tensor.is_contiguous(),
               "collectives take flat tensors");
}

void check_summable(const at::Tensor& tensor) {
  check_flat(tensor);
  TUTTI_ASSERT(can_sum(tensor.scalar_type()),
               std::string("no sums of ") + c10::toString(tensor.scalar_type()));
}

void check_parts(const at::Tensor& part, const at::Tensor& whole, int parts) {
  check_flat(part);
  check_flat(whole);
  TUTTI_ASSERT(part.scalar_type() == whole.scalar_type(), "part and whole differ in dtype");
  TUTTI_ASSERT(part.numel() * parts == whole.numel(), "the whole must be as large as all parts together");
}

}  // namespace tutti
