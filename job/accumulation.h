#pragma once

#include <string>

#include "job/job.h"
#include "models/model.h"

namespace tutti {

// Throws UserError if the number of microbatches would follow from the memory of a rank, but the model needs
// the same steps on all ranks.
void require_accumulation(const Job& job, const Model& model);

// A line on microbatches that are always empty; "" if there are none.
std::string accumulation_advice(const Job& job);

}  // namespace tutti
