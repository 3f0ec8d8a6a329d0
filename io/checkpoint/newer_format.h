#pragma once

#include <string>

#include "runtime/error.h"

namespace tutti {

// A checkpoint of a newer tutti. The checkpoint is whole, so a search must not pass over it to an older one,
// nor a run begin anew beside it.
class NewerFormat : public OperatingError {
 public:
  using OperatingError::OperatingError;
};

}  // namespace tutti
