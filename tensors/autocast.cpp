#include "tensors/autocast.h"

#include <ATen/autocast_mode.h>

namespace tutti {

AutocastScope::AutocastScope(std::optional<at::ScalarType> dtype)
    : enabled_(at::autocast::is_autocast_enabled(at::kCPU)),
      cached_(at::autocast::is_autocast_cache_enabled()),
      dtype_(at::autocast::get_autocast_dtype(at::kCPU)) {
  at::autocast::set_autocast_enabled(at::kCPU, dtype.has_value());
  at::autocast::set_autocast_cache_enabled(false);
  if (dtype) at::autocast::set_autocast_dtype(at::kCPU, *dtype);
}

AutocastScope::~AutocastScope() {
  at::autocast::set_autocast_dtype(at::kCPU, dtype_);
  at::autocast::set_autocast_cache_enabled(cached_);
  at::autocast::set_autocast_enabled(at::kCPU, enabled_);
}

}  // namespace tutti
