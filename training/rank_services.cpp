#include "training/rank_services.h"

#include <exception>

#include "tensors/memory/out_of_memory.h"
#include "tensors/memory/torch_error.h"

namespace tutti {

void RankServices::with_model(bool works, const Work& work, int64_t forwards) {
  try {
    hold_model(works, forwards);
    if (works) work();
  } catch (...) {
    free_model();
    throw;
  }
  free_model();
}

void RankServices::visit_parameters(std::size_t parameters, bool works, const Visit& visit) {
  for (std::size_t p = 0; works && p < parameters; ++p) visit(p);
}

std::optional<std::string> RankServices::attempt(const Work& work) try {
  work();
  return std::nullopt;
} catch (const std::exception& error) {
  if (!is_lack_of_memory(error)) throw;
  return one_line(error);
}

}  // namespace tutti
